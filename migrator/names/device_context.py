"""Where a value goes: into a device, a dictionary key, a message?

``device_context`` climbs from an expression to what decides what it is. The lists of
APIs and names that it goes by are data (``rules/1_device_strings.yaml``).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from migrator.files.file_types import YACS_KEY
from migrator.language import N_, _
from migrator.names.device_vocabulary import (
    Beside,
    DeviceVocabulary,
    asks_for_cuda,
    beside,
    chosen_beside_cpu,
    is_device_or_backend,
    works_with_foreign,
)
from migrator.names.flow import candidates
from migrator.names.index import ModuleIndex
from migrator.names.npu_branches import beside_npu, has_npu
from migrator.names.tree import (
    FUNCTIONS,
    argument_of,
    called_name,
    defaults,
    elements,
    kept_as,
    last_name,
    string_value,
)

_STRING_METHODS = frozenset(
    "startswith endswith removeprefix removesuffix replace split rsplit partition find index lstrip"
    " strip".split()
)
# What gives the text that it is called on, or the part of it that names the device.
_SAME_TEXT = ("lower", "casefold", "strip")
_CONTAINER_METHODS = ("add", "append", "insert", "extend", "remove", "discard")
_COLLECTIONS = (ast.List, ast.Tuple, ast.Set)
_DEEPEST_SUM = 3  # operands of operands that are looked at
_GETTERS = ("get", "pop", "setdefault")
_LOOK_UPS = ("get", "getenv", "setdefault", "pop", "getattr", "get_attr")
# Calls whose value is what they are given, as far as a device goes.
_HAND_ON = ("str", "list", "tuple", "set", "frozenset", "cast", "sorted", "param", "Choice")
_OPTION_KEYWORDS = ("default", "choices", "const", "default_factory", "value", "type")
_DEVICE_METHODS = ("to", "new_tensor", "new_zeros", "new_empty")
# Calls that compare their first two arguments.
_COMPARISONS = frozenset(
    "assertEqual assertEquals assertNotEqual assertIn assertNotIn assertIs assert_equal assert_in".split()
)
_AUTOCAST = re.compile(r"\bautocast\b")
CERTAIN, LIKELY, UNCLEAR, NO = "certain", "likely", "unclear", "no"


class DeviceContext(NamedTuple):
    """Whether a value is a device, and the reason, in words that a report can print.

    ``verdict`` is CERTAIN, LIKELY, UNCLEAR or NO. ``api`` is the called name where an argument decided.
    """

    verdict: str
    reason: str
    api: str = ""
    of_call: bool = False  # it is the argument of a call that takes no device


def device_context(
    index: ModuleIndex, vocabulary: DeviceVocabulary, node: ast.expr, depth: int = 0
) -> DeviceContext:
    """Where the value of ``node`` goes.

    A value that stands beside ``"npu"`` is left alone: that program has met
    NPUs before, and knows its CUDA branch from its NPU branch.
    """
    context = _Climb(index, vocabulary, depth).from_node(node)
    handed_on = context.verdict == NO and context.of_call
    chosen = (handed_on or context.verdict in (LIKELY, UNCLEAR)) and chosen_beside_cpu(index, node)
    kept = index.chosen(node)
    # Trainer(accelerator=…): the name says a device of a library.
    if chosen and not vocabulary.leaves(kept_as(index.parent(kept), kept)):
        context = DeviceContext(CERTAIN, _("selected if there is a GPU, otherwise cpu"), context.api)
    if context.verdict == LIKELY and depth == 0 and (library := works_with_foreign(index, vocabulary, node)):
        reason = _("in code for {library}, whose devices are not torch devices", library=library)
        context = DeviceContext(UNCLEAR, reason, context.api)
    if context.verdict != NO and depth == 0 and beside_npu(index, node):
        return DeviceContext(NO, _("beside a branch for NPUs"))
    return context


def is_searched_pattern(index: ModuleIndex, node: ast.expr) -> bool:
    """Whether a string is a regular expression that is looked for: ``re.match(string, …)``.

    Or whether an expression is a compiled one: ``pattern.match(…)``.
    """
    call = index.parent(node)
    if isinstance(call, ast.Attribute) and call.value is node:
        return call.attr in ("match", "fullmatch") and isinstance(index.parent(call), ast.Call)
    return (
        isinstance(call, ast.Call)
        and called_name(call) in ("match", "fullmatch", "search")
        and len(call.args) > 1
        and call.args[0] is node
    )


def _elements(node: ast.BinOp) -> list[ast.expr]:
    """What is in a sum of collections: of ``["cpu"] + (["cuda"] if … else [])`` both; nothing of strings."""
    parts: list[ast.expr] = [node]
    for _round in range(_DEEPEST_SUM):
        parts = [inner for part in parts for inner in _operands(part)]
    return [item for part in parts if isinstance(part, _COLLECTIONS) for item in part.elts]


def _key_before(items: Sequence[ast.expr], value: ast.AST) -> str:
    """The key of a yacs configuration whose value stands behind it: ``["MODEL.DEVICE", "cuda", …]``."""
    keys = (string_value(key) or "" for key, each in zip(items, items[1:]) if each is value)
    return next(filter(YACS_KEY.match, keys), "")


def _operands(node: ast.expr) -> tuple[ast.expr, ...]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mult)):
        return node.left, node.right
    return (node.body, node.orelse) if isinstance(node, ast.IfExp) else (node,)


def _of_foreign(qualified: str) -> DeviceContext:
    return DeviceContext(
        UNCLEAR, _("an argument of {qualified}(), which is not torch's", qualified=qualified)
    )


class _Climb:
    """The file, the vocabulary, and how many names were followed to come here.

    ``siblings`` are the values beside the one that is asked about: in a list, in the branches of a choice.
    """

    def __init__(self, index: ModuleIndex, vocabulary: DeviceVocabulary, depth: int) -> None:
        self.index = index
        self.vocabulary = vocabulary
        self.depth = depth
        self.siblings = Beside()

    def of(self, node: ast.expr) -> DeviceContext:
        """The context of another value, that decides about this one."""
        depth = self.depth + 1
        key = ("context", node, self.vocabulary, depth)
        return self.index.once(key, lambda: device_context(self.index, self.vocabulary, node, depth))

    def from_node(self, node: ast.expr) -> DeviceContext:
        child: ast.AST = node
        came_from: ast.AST = node
        while True:
            parent = self.index.parent(child)
            outcome = None
            if parent is None or isinstance(parent, ast.Module):
                return DeviceContext(NO, _("message text"))
            if isinstance(parent, ast.IfExp):
                if child is parent.test:
                    return DeviceContext(NO, _("a condition"))
                self.siblings |= beside([parent.body, parent.orelse])
                if asks_for_cuda(parent.test):
                    self.siblings |= beside([parent.test])
            elif isinstance(parent, _COLLECTIONS):
                if key := _key_before(parent.elts, child):
                    return self._hinted(key, _("the value of {name}", name=key))
                self.siblings |= self._among(parent, parent.elts)
            elif isinstance(parent, ast.BoolOp):
                self.siblings |= self._among(parent, parent.values)
            elif isinstance(parent, (ast.Starred, ast.Await, ast.Lambda)):
                pass  # of a lambda its body: a default is a part of its parameters
            elif isinstance(parent, ast.JoinedStr):
                if not self._begins_string(parent, child):
                    return DeviceContext(UNCLEAR, _("part of a longer string"))
            elif isinstance(parent, ast.BinOp):
                if isinstance(parent.op, ast.Div):
                    return DeviceContext(NO, _("part of a path"))
                together = _elements(parent)
                if has_npu(self.index, parent, together):
                    return DeviceContext(NO, _("beside a branch for NPUs"))
                self.siblings |= beside(together)
                ends = child is parent.right and isinstance(parent.op, ast.Add) and not together
                if ends and not isinstance(child, ast.BinOp):
                    return DeviceContext(UNCLEAR, _("end of a longer string"))
            elif isinstance(parent, ast.keyword):
                call = self.index.parent(parent)
                outcome = self._keyword(call, parent)
                parent = call or parent  # its value flows on
            elif isinstance(parent, ast.Call):
                outcome = self._argument(parent, child)
            elif isinstance(parent, ast.Attribute):
                call = self.index.call_of(parent)
                if call is None:
                    return DeviceContext(UNCLEAR, _("its attribute is read"))
                if parent.attr not in ("format", "lower", "upper", "strip"):
                    return DeviceContext(UNCLEAR, _("its method {attr}() is called", attr=parent.attr))
                parent = call
            elif isinstance(parent, ast.Dict):
                outcome = self._in_dictionary(parent, child)
            elif isinstance(parent, ast.Subscript):
                if child is parent.slice:
                    return self._key(parent)
            else:
                return self._end(parent, child, came_from)
            if outcome is not None:
                return outcome
            came_from, child = child, parent

    def _end(self, parent: ast.AST, child: ast.AST, came_from: ast.AST) -> DeviceContext:
        """What takes a value and hands it on to nothing above it."""
        if isinstance(parent, ast.NamedExpr):
            return self._target(parent.target)
        if isinstance(parent, ast.Compare):
            return self._compared([parent.left, *parent.comparators], child)
        if isinstance(parent, ast.Assign):
            target = parent.targets[0]
            if isinstance(child, ast.Tuple) and isinstance(target, ast.Tuple):
                for element, value in zip(target.elts, child.elts):
                    if value is came_from:
                        self.siblings = Beside()
                        return self._target(element)
            return self._target(target)
        if isinstance(parent, ast.AnnAssign):
            if child is parent.annotation:
                return self._hinted(last_name(parent.target), _("an annotation"))
            # Literal["cuda", "cpu"] names values; a call, as in Annotated, may take any string.
            constants = [item for item in ast.walk(parent.annotation) if isinstance(item, ast.Constant)]
            self.siblings |= beside(
                item for item in constants if isinstance(self.index.parent(item), (ast.Subscript, ast.Tuple))
            )
            return self._target(parent.target)
        if isinstance(parent, ast.AugAssign):
            name = last_name(parent.target)
            return self._hinted(name, _("value added to {name}", name=name or _("a variable")))
        if isinstance(parent, ast.Return):
            return self._returned(parent)
        if isinstance(parent, (ast.For, ast.AsyncFor)):
            is_iterated = child is parent.iter
            return self._target(parent.target) if is_iterated else DeviceContext(UNCLEAR, _("a loop"))
        if isinstance(parent, ast.comprehension):
            return self._hinted(last_name(parent.target), _("the values of a loop"))
        if isinstance(parent, ast.arguments):
            return self._default(parent, child)
        if isinstance(parent, ast.arg):
            return self._hinted(parent.arg, _("the annotation of {arg}", arg=parent.arg))
        if parent.__class__.__name__ == "MatchValue":
            return self._match_case(parent)
        if isinstance(parent, ast.Expr):
            called = called_name(child)  # groups.get(ranks, "nccl"), and not the name of an option
            if called and called not in self.vocabulary.option_calls:
                return DeviceContext(UNCLEAR, _("an argument of {called}()", called=called))
            return DeviceContext(NO, _("unused string"))
        return DeviceContext(UNCLEAR, _("unknown use"))

    def _likely(self, reason: str, **values: object) -> DeviceContext:
        """LIKELY for a reason that names what is looked for: a device, a backend."""
        return DeviceContext(LIKELY, _(reason, noun=_(self.vocabulary.noun), **values))

    def _begins_string(self, string: ast.JoinedStr, field: ast.AST) -> bool:
        """Whether a field begins an f-string, and ends it or is followed by a colon."""
        parts = self.index.parts(string)
        if not parts or parts[0].expression is not field:
            return False
        return len(parts) == 1 or parts[1].expression is not None or parts[1].raw.startswith(":")

    def _among(self, parent: ast.AST, siblings: Iterable[ast.expr]) -> Beside:
        """What the parts of an expression say to each of them, of which there may be thousands."""
        return self.index.once(("among", parent), lambda: beside(siblings))

    def _hinted(self, name: str, where: str, more: Beside = Beside()) -> DeviceContext:
        """What a name, and the values beside it, say."""
        every = self.siblings | more
        if self.vocabulary.leaves(name):
            return DeviceContext(UNCLEAR, _("{where}, which is a library's word here", where=where))
        if self.siblings.question and every.cpu:
            return DeviceContext(CERTAIN, _("{where}: choice between a GPU and the CPU", where=where))
        if name and self.vocabulary.says(name):
            known = name.lower() in self.vocabulary.keys
            read = N_("{where}, which the project uses as a {noun}")
            return self._likely(read if known else N_("{where}, named like a {noun}"), where=where)
        if every.device:
            return DeviceContext(LIKELY, _("{where}, beside another device", where=where))
        return DeviceContext(UNCLEAR, where)

    def _target(self, target: ast.expr) -> DeviceContext:
        """What is assigned is what its name is used for, as far as this module shows it."""
        if isinstance(target, ast.Name) and self.depth < 2:
            verdicts, api = self._used_as(target)
            if verdicts == {CERTAIN}:
                goes = self._likely(N_("{id} goes only where a {noun} is expected"), id=target.id)
                return goes._replace(verdict=CERTAIN, api=api)
            if CERTAIN in verdicts:
                return self._likely(N_("{id} is used as a {noun}"), id=target.id)
            if LIKELY in verdicts and UNCLEAR not in verdicts:
                return self._likely(N_("{id} seems to be used as a {noun}"), id=target.id)
        name = last_name(target)
        return self._hinted(name, _("the value of {name}", name=name or _("a variable")))

    def _used_as(self, target: ast.Name) -> tuple[set[str], str]:
        """The verdicts on the uses of a variable, and the API that decided on the first of them."""

        def find() -> tuple[set[str], str]:
            contexts = [self.of(use) for use in self.index.uses_of(target)]
            return {context.verdict for context in contexts}, contexts[0].api if contexts else ""

        owner = self.index.scope_of(target).owner(target.id)
        return self.index.once(("used as", target.id, owner, self.vocabulary, self.depth), find)

    def _returned(self, statement: ast.Return) -> DeviceContext:
        function, owner = self.index.function_of(statement), self.index.class_of(statement)
        name = function.name if function is not None else ""
        if owner is not None and name in ("name", "type", "get_name", "kind"):
            name = f"{owner.name} {name}"
        found = Beside()
        if function is not None:
            returns = (node for node in ast.walk(function) if isinstance(node, ast.Return))
            found = self._among(function, (node.value for node in returns if node.value))
        return self._hinted(name, _("what {name}() returns", name=name), found)

    def _keyword(self, call: ast.AST | None, keyword: ast.keyword) -> DeviceContext | None:
        """A keyword argument; None where the call hands the value on."""
        name, called = keyword.arg or "", called_name(call)
        shown = called or _("a call")
        if not isinstance(call, ast.Call):
            return DeviceContext(UNCLEAR, _("a class's keyword"))
        if called in self.vocabulary.option_calls and name in _OPTION_KEYWORDS:
            return self._option(call)
        qualified = self._called_api(call.func)
        package = qualified.partition(".")[0]
        is_foreign = not self.vocabulary.foreign.isdisjoint((package, qualified))
        if is_foreign and name.lower() not in self.vocabulary.keys:
            return _of_foreign(qualified)
        if name in self._takers(qualified, called):
            return DeviceContext(CERTAIN, f"{called}({name}=…)", name)
        if name in self.vocabulary.keywords:
            certain = qualified.startswith("torch.") or called in _DEVICE_METHODS
            return DeviceContext(CERTAIN if certain else LIKELY, f"{shown}({name}=…)", name)
        if called in self.vocabulary.never:
            return DeviceContext(NO, _("an argument of {called}()", called=called), of_call=True)
        return self._hinted(name, _("the argument {name} of {called}()", name=name, called=shown))

    def _called_api(self, function: ast.expr) -> str:
        """The full name of what is called; of several that it may be, one that takes a device."""
        name = self.index.qualified_name(function)
        if name:
            return name
        names = [self.index.qualified_name(value) for value in candidates(self.index, function)]
        return next((name for name in names if name in self.vocabulary.apis), "")

    def _takers(self, qualified: str, called: str) -> tuple[object, ...]:
        """The positions and keywords of a call that take a device."""
        apis = self.vocabulary.apis
        return apis.get(qualified) or apis.get(f".{called}") or ()

    def _argument(self, call: ast.Call, child: ast.AST) -> DeviceContext | None:
        """A positional argument; None where the call hands the value on."""
        position = next((place for place, each in enumerate(call.args) if each is child), None)
        if position is None:
            return None  # the value of the call that was climbed through
        argument, called = call.args[position], called_name(call)
        vocabulary, qualified = self.vocabulary, self._called_api(call.func)
        if called == "partial" and position:  # it calls its first argument with the others
            qualified, position = self._called_api(call.args[0]), position - 1
            called = qualified.rpartition(".")[2]
        shown = called or _("a call")
        if qualified.partition(".")[0] in vocabulary.foreign:
            return _of_foreign(qualified)
        takers = self._takers(qualified, called)
        if position in takers or "*" in takers:
            return DeviceContext(CERTAIN, f"{shown}(…)", called)
        if qualified.startswith("torch.cuda.") and position == 0:
            return DeviceContext(CERTAIN, f"{called}(…)")
        if called in vocabulary.option_calls:
            return self._option(call) if position or called == "Option" else None
        if called in _COMPARISONS and position < 2:
            return self._compared(call.args[:2], argument)
        if is_searched_pattern(self.index, argument) and vocabulary.says_device(call.args[1]):
            return DeviceContext(CERTAIN, _("pattern for a device name"))
        if isinstance(call.func, ast.Attribute):
            if called in _STRING_METHODS:
                if vocabulary.says_device(call.func.value):
                    return DeviceContext(CERTAIN, _("part of a device name"))
                if self._is_used(call.func.value):
                    return self._likely(N_("part of a string that is used as a {noun}"))
                return DeviceContext(UNCLEAR, _("part of another string"))
            if called == "format" and not self._begins_format(call.func.value):
                return DeviceContext(NO, _("part of a longer string"))
            if called in _CONTAINER_METHODS:
                name = last_name(call.func.value)
                return self._hinted(name, _("an element of {name}", name=name))
        if called in _GETTERS and not position and isinstance(call.func, ast.Attribute):
            return DeviceContext(NO, _("a key"))
        if called in _LOOK_UPS and position:
            if vocabulary.says_device(call.args[position - 1]):
                return self._likely(N_("default of a setting named like a {noun}"))
            return None
        if called in _HAND_ON:
            return None
        if called == "parametrize" and position and vocabulary.says_device(call.args[0]):
            return self._likely(N_("test parameter named like a {noun}"))
        if called in vocabulary.never:
            return DeviceContext(NO, _("an argument of {called}()", called=called), of_call=True)
        member = self._member(call, argument)
        if member is not None:  # what the member of an Enum becomes, its look-up has to become, too
            return self.of(member)
        parameter = self._parameter(call, position)
        if parameter is not None:
            where = _("the parameter {parameter} of {called}()", parameter=parameter, called=called)
            return self._hinted(parameter, where)
        if qualified and self.index.neighbours and self.index.neighbours.taker(qualified) == position:
            return self._likely(N_("argument of {called}() named like a {noun}"), called=called)
        if isinstance(self.index.parent(call), ast.withitem) and _AUTOCAST.search(self.index.text):
            reason = _("context manager of with, in a file that uses autocast: {called}()", called=shown)
            return DeviceContext(LIKELY, reason)
        if called and vocabulary.says(called):
            return DeviceContext(LIKELY, _("an argument of {called}()", called=called))
        return DeviceContext(UNCLEAR, _("an argument of {called}()", called=shown))

    def _begins_format(self, template: ast.expr) -> bool:
        """Whether a text may begin with what ``format`` puts into it."""
        values = self.index.assigned(template) if isinstance(template, ast.Name) else [template]
        texts = [string_value(value) for value in values]
        return not texts or any(text is None or text.startswith("{") for text in texts)

    def _member(self, call: ast.Call, value: ast.expr) -> ast.expr | None:
        """The value of the member of this file's Enum that a call looks up: ``Kind("cuda")``."""
        if not isinstance(call.func, ast.Name) or len(call.args) != 1:
            return None
        owners = (binding.node for binding in self.index.bindings(call.func))
        members = (
            statement.value
            for owner in owners
            if isinstance(owner, ast.ClassDef) and any("Enum" in last_name(base) for base in owner.bases)
            for statement in owner.body
            if isinstance(statement, ast.Assign)
        )
        return next((each for each in members if string_value(each) == string_value(value)), None)

    def _parameter(self, call: ast.Call, position: int) -> str | None:
        """The name of the parameter that a positional argument fills, for a function of this module."""
        if not isinstance(call.func, ast.Name):
            return None
        for binding in self.index.bindings(call.func):
            function: ast.AST | None = binding.node
            shift = 0
            if isinstance(function, ast.ClassDef):
                methods = (each for each in function.body if isinstance(each, ast.FunctionDef))
                function = next((each for each in methods if each.name == "__init__"), None)
                shift = 1
            if isinstance(function, FUNCTIONS) and not any(isinstance(a, ast.Starred) for a in call.args):
                names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
                if position + shift < len(names):
                    return names[position + shift]
        return None

    def _option(self, call: ast.Call) -> DeviceContext:
        """The default or a choice of a command-line option or a field."""
        given = [*call.args, *(k.value for k in call.keywords if k.arg in ("dest", "name"))]
        names = [text for text in map(string_value, given) if text is not None]
        if self._chooses_key(call):
            return DeviceContext(UNCLEAR, _("a choice that is the key of a dictionary"))
        if any(self.vocabulary.says(name.strip("-").replace("-", "_")) for name in names):
            return self._likely(N_("option named like a {noun} ({names})"), names=names[0])
        if any(map(self.vocabulary.leaves, names)):
            return DeviceContext(UNCLEAR, _("the option {names}", names=names[0]))
        offered = [k.value for k in call.keywords if k.arg in ("default", "choices")]
        choices = beside(each for value in offered for each in elements(value) or [value])
        if (self.siblings | choices).device:
            return DeviceContext(LIKELY, _("an option that also offers other devices"))
        if names:
            return DeviceContext(UNCLEAR, _("the option {names}", names=names[0]))
        return device_context(self.index, self.vocabulary, call, self.depth)

    def _chooses_key(self, call: ast.Call) -> bool:
        """Whether an option offers the keys of a dictionary, of which some are no devices or backends."""
        texts = {string_value(each) for each in elements(argument_of(call, "choices"))} - {None}
        if not texts or all(is_device_or_backend(str(text)) for text in texts):
            return False
        tables = (self.index.parent(string) for string in self.index.strings)
        return any(
            isinstance(table, ast.Dict) and texts <= {string_value(key) for key in table.keys}
            for table in tables
        )

    def _compared(self, operands: Iterable[ast.expr], child: ast.AST) -> DeviceContext:
        others = [each for each in operands if each is not child and not isinstance(each, ast.Constant)]
        if any(isinstance(each, ast.Subscript) and isinstance(each.slice, ast.Slice) for each in others):
            return DeviceContext(NO, _("compared with a slice, whose length would have to change too"))
        if any(self.vocabulary.says_device(other) for other in others):
            return DeviceContext(CERTAIN, _("compared with a device or a backend"))
        if any(isinstance(other, ast.Attribute) and other.attr in ("type", "param") for other in others):
            return DeviceContext(LIKELY, _("compared with a type"))
        if any(self._is_used(other) for other in others):
            return self._likely(N_("compared with what is used as a {noun}"))
        if any(self.vocabulary.leaves(last_name(other)) for other in others):
            where = _("a comparison")
            return DeviceContext(UNCLEAR, _("{where}, which is a library's word here", where=where))
        if self._among(child, elements(child)).device:
            return DeviceContext(LIKELY, _("compared together with other devices"))
        return DeviceContext(UNCLEAR, _("a comparison"))

    def _is_used(self, value: ast.expr) -> bool:
        """Whether a variable or parameter whose name says nothing, or its text, is also used as a device."""
        while isinstance(value, ast.Call):
            function = value.func
            if isinstance(function, ast.Attribute) and function.attr in _SAME_TEXT:
                value = function.value
            elif isinstance(function, ast.Name) and function.id == "str" and len(value.args) == 1:
                value = value.args[0]
            else:
                return False
        return isinstance(value, ast.Name) and self.depth < 2 and CERTAIN in self._used_as(value)[0]

    def _match_case(self, pattern: ast.AST) -> DeviceContext:
        match: Any = self.index.parent(self.index.statement_of(pattern))  # Python 3.9 has no ast.Match
        if self.vocabulary.says_device(match.subject):
            return DeviceContext(CERTAIN, _("a case of a device or a backend"))
        patterns = (case.pattern for case in match.cases)
        values = (each.value for each in patterns if each.__class__.__name__ == "MatchValue")
        if self._among(match, values).device:
            return DeviceContext(LIKELY, _("a case beside other devices"))
        return DeviceContext(UNCLEAR, _("a match case"))

    def _in_dictionary(self, node: ast.Dict, child: ast.AST) -> DeviceContext:
        outside = self.of(node) if self.depth < 2 else DeviceContext(UNCLEAR, _("a dictionary"))
        keys = self.index.once(("keys", node), lambda: dict(zip(node.values, node.keys)))
        if child in keys:
            if outside.verdict == CERTAIN:
                return outside
            key = keys[child]
            if key is not None and self.vocabulary.says_device(key):
                return self._likely(N_("value of a key named like a {noun}"))
            where = _("a dictionary's value")
            if self.vocabulary.leaves(string_value(key) or ""):
                where = _("{where}, which is a library's word here", where=where)
            return DeviceContext(UNCLEAR, where)
        holder = self.index.parent(node)
        is_map_location = isinstance(holder, ast.keyword) and holder.arg == "map_location"
        if outside.api in ("map_location", "load") or is_map_location:
            return DeviceContext(CERTAIN, "map_location", "map_location")
        values: dict[object, ast.expr] = self.index.once(
            ("values", node), lambda: dict(zip(node.keys, node.values))
        )
        if self.index.qualified_name(values[child]).startswith("torch.cuda."):
            return DeviceContext(LIKELY, _("key of a function of the device"))
        if self.index.once(("looked up", node, self.vocabulary), lambda: self._is_looked_up_by_device(node)):
            return DeviceContext(LIKELY, _("key looked up by a device"))
        if outside.verdict != NO and self._among(node, filter(None, node.keys)).device:
            return DeviceContext(UNCLEAR, _("a dictionary's key, beside other devices"))
        return DeviceContext(NO, _("a dictionary's key"))

    def _is_looked_up_by_device(self, node: ast.Dict) -> bool:
        """Whether a dictionary, or what it is assigned to, is asked for a device's key."""
        holders: list[ast.expr] = [node]
        parent = self.index.parent(node)
        name = ""
        if isinstance(parent, ast.Assign):
            target = parent.targets[0]
            name = last_name(target)
            if isinstance(target, ast.Name):
                holders += self.index.uses_of(target)
        holders += [ref for ref in self.index.refs if isinstance(ref, ast.Attribute) and ref.attr == name]
        return any(
            not isinstance(key, ast.Constant) and self.vocabulary.says_device(key)
            for key in map(self._looked_up_key, holders)
            if key is not None
        )

    def _looked_up_key(self, holder: ast.expr) -> ast.expr | None:
        """The key of ``holder[key]`` and of ``holder.get(key)``."""
        around = self.index.parent(holder)
        if isinstance(around, ast.Subscript) and around.value is holder:
            return around.slice
        if isinstance(around, ast.Attribute) and around.attr == "get":
            call = self.index.parent(around)
            return call.args[0] if isinstance(call, ast.Call) and call.args else None
        return None

    def _is_asked_for_devices(self, holder: ast.expr) -> bool:
        """Whether the file also asks by a name for what a dictionary holds, and that name is a device's."""
        text, written = self.index.text, re.escape(self.index.segment(holder))
        keys = set(re.findall(rf"(?<![\w.]){written}\[([A-Za-z_]\w*)\]", text))
        made = (rf"(?<![\w.]){key}\s*=\s*f?[\"'](?:cuda|npu):" for key in keys)
        return any(self.vocabulary.says(key) for key in keys) or any(re.search(each, text) for each in made)

    def _key(self, node: ast.Subscript) -> DeviceContext:
        if last_name(node.value) != "Literal":
            if self._is_asked_for_devices(node.value):
                return DeviceContext(LIKELY, _("key looked up by a device"))
            return DeviceContext(NO, _("a key"))
        around = self.index.parent(node)
        if isinstance(around, ast.arg):
            self.siblings = Beside()  # what the parameter is used for decides, not the other choices
            return self._of_parameter(around, _("a Literal"))
        holder = around.arg if isinstance(around, ast.keyword) else ""
        return self._hinted(holder or last_name(getattr(around, "target", None)), _("a Literal"))

    def _default(self, arguments: ast.arguments, child: ast.AST) -> DeviceContext:
        """A parameter's default is what the parameter's name says, or is used for."""
        parameter = next(each for each, default in defaults(arguments) if default is child)
        return self._of_parameter(parameter, _("the default of {arg}", arg=parameter.arg))

    def _of_parameter(self, parameter: ast.arg, where: str) -> DeviceContext:
        """What stands at a parameter is what its name says, or is used for."""
        name, function = parameter.arg, self.index.parent(self.index.parent(parameter))
        scope = self.index.inside(function) if self.depth < 2 else None
        uses = self.index.uses(name, scope) if scope is not None else []
        if any(self.of(use).verdict == CERTAIN for use in uses):
            return self._likely(N_("{where}, which is used as a {noun}"), where=where)
        return self._hinted(name, where)
