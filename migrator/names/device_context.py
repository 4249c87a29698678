"""Where a value goes: into a device, a dictionary key, a message?

``device_context`` climbs from an expression to what decides what it is. The lists of
APIs and names that it goes by are data (``rules/1_device_strings.yaml``).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any, cast

from migrator.files.document import YACS_KEY
from migrator.language import N_, _
from migrator.light import NamedTuple
from migrator.names.commands import is_value_for_parser
from migrator.names.conditions import beside_npu, has_npu
from migrator.names.device_vocabulary import (
    OF_OWNER,
    Beside,
    DeviceVocabulary,
    asks_for_cuda,
    beside,
    chosen_beside_cpu,
    is_device_or_backend,
    without_cuda,
    works_with_foreign,
)
from migrator.names.goes_to import Sink, kept_as, keys_of, taken_by, values_of
from migrator.names.index import ModuleIndex
from migrator.names.made_from import given_names, made_from
from migrator.names.qualified import OF_ANY
from migrator.names.tree import (
    FUNCTIONS,
    Function,
    argument_of,
    bare_name,
    called_name,
    elements,
    holder_of,
    is_enum,
    last_name,
    string_value,
)
from migrator.names.what_is import CLASS, what_is

_STRING_METHODS = frozenset(
    "startswith endswith removeprefix removesuffix replace split rsplit partition find index lstrip"
    " strip".split()
)
_NUMBERED, _QUOTED = re.compile(r"f?[\"']cuda:[\d%{]"), re.compile(r"[\"']cuda[:\"']")
# What gives the text that it is called on, or the part of it that names the device.
_WHOLE_TEXT = ("format", "lower", "upper", "strip")
_CONTAINER_METHODS = ("add", "append", "insert", "extend", "remove", "discard")
_DEEPEST_SUM = 3  # operands of operands that are looked at
_DEEPEST_CHAIN = 4  # what an object is a part of, and what that is
_GETTERS = ("get", "pop", "setdefault")
_LOOK_UPS = ("get", "getenv", "setdefault", "pop", "getattr", "get_attr")
# Calls whose value is what they are given, as far as a device goes.
_HAND_ON = frozenset(
    "str list tuple set frozenset cast sorted reversed iter next filter param Choice".split()
)
_OPTION_KEYWORDS = ("default", "choices", "const", "default_factory", "value", "type", "envvar")
_DEVICE_METHODS = ("to", "new_tensor", "new_zeros", "new_empty")
# Calls that compare their first two arguments.
_COMPARISONS = frozenset(
    "assertEqual assertEquals assertNotEqual assertIn assertNotIn assertIs assert_equal assert_in".split()
)
_MOCKED = frozenset({"assert_called_with", "assert_called_once_with", "assert_any_call"})
REPEATED = ("cuda", "nccl")
_AUTOCAST = re.compile(r"\bautocast\b")
CERTAIN, LIKELY, UNCLEAR, NO = "certain", "likely", "unclear", "no"
# What takes a value, and where: what that says of it by itself.
_ENDS: dict[tuple[str, type], tuple[str, str]] = {
    ("unused", ast.Module): (NO, N_("message text")),
    ("unused", ast.Expr): (NO, N_("unused string")),
    ("test", ast.IfExp): (NO, N_("a condition")),
    ("member", ast.Attribute): (UNCLEAR, N_("its attribute is read")),
}


class DeviceContext(NamedTuple):
    """Whether a value is a device, and the reason, in words that a report can print.

    ``verdict`` is CERTAIN, LIKELY, UNCLEAR or NO. ``api`` is the called name where an argument decided.
    """

    verdict: str
    reason: str
    api: str = ""
    by: str = ""  # what decided, where that matters: see below


# A call that takes no device; a case for NPUs or a slice, so that nothing changes it; only other devices; a
# library whose devices are not torch's.
_CALL, SETTLED, BESIDE, FOREIGN = "call", "settled", "beside", "foreign"

# A field of str.format by its place, and an option at the end of what stands before it.
_FIELD, _PERCENT = r"\{\d*\}", r"%[sdr]"  # compiled where one is looked for
_OPTION = r"""(?:^|\s)(--?[\w-]+)[ =]['"]?$"""


def device_context(
    index: ModuleIndex, vocabulary: DeviceVocabulary, node: ast.expr, depth: int = 0
) -> DeviceContext:
    """Where the value of ``node`` goes.

    A value that stands beside ``"npu"`` is left alone: that program has met
    NPUs before, and knows its CUDA branch from its NPU branch.
    """
    if is_value_for_parser(index, node):
        return DeviceContext(NO, _("the value of an option, which its parser interprets"), by=SETTLED)
    if vocabulary.alone:
        return DeviceContext(NO, _("in a program that does not use torch"), by=SETTLED)
    context = _Climb(index, vocabulary, depth).from_node(node)
    handed_on = context.verdict == NO and context.by == _CALL
    chosen = (handed_on or context.verdict in (LIKELY, UNCLEAR)) and chosen_beside_cpu(index, node)
    # Trainer(accelerator=…): the name says a device of a library.
    if chosen and not vocabulary.leaves(kept_as(index, index.chosen(node))):
        context = DeviceContext(CERTAIN, _("selected if there is a GPU, otherwise cpu"), context.api)
    if depth == 0 and context.verdict == LIKELY and (library := works_with_foreign(index, vocabulary, node)):
        reason = _("in code for {library}, whose devices are not torch devices", library=library)
        context = DeviceContext(UNCLEAR, reason, context.api, FOREIGN)
    if depth == 0 and context.verdict != NO and beside_npu(index, node):
        return DeviceContext(NO, _("beside a branch for NPUs"), by=SETTLED)
    return context


# What Python itself reads there are names of the module, of a class.
_LISTS_OF_NAMES = frozenset({"__all__", "__slots__", "__match_args__", "__dir__"})
_OF_ATTRIBUTES = frozenset({"__getattr__", "__getattribute__", "__setattr__", "__delattr__"})


def is_searched_pattern(index: ModuleIndex, node: ast.expr) -> bool:
    """Whether a string is a regular expression that is looked for: ``re.match(string, …)``.

    Or whether an expression is a compiled one: ``pattern.match(…)``.
    """
    call = index.parent(node)
    if isinstance(call, ast.Attribute):
        return call.attr in ("match", "fullmatch") and isinstance(index.parent(call), ast.Call)
    searches = called_name(call) in ("match", "fullmatch", "search")
    return searches and isinstance(call, ast.Call) and len(call.args) > 1 and call.args[0] is node


def _begins_text(sink: Sink, value: ast.AST) -> bool:
    """Whether a value begins what a call makes: ``":".join(["cuda", i])``, ``"{}:{}".format("cuda", i)``.

    Or is one of several there: ``",".join(["cuda:0", "cuda:1"])``.
    """
    call = sink.holder
    text = string_value(holder_of(call)) if isinstance(call, ast.Call) else None
    if text is None or called_name(call) not in ("join", "format"):
        return False
    if called_name(call) == "join":
        return text == "," or (text in ("", ":") and elements(sink.value)[:1] == [value])
    named = re.escape(sink.name) or ("0?" if sink.place == 0 else str(sink.place))
    return re.match(rf"\{{{named}\}}(?::|\Z)", text) is not None


def _keys_before(items: Sequence[ast.expr]) -> dict[ast.AST, str]:
    """The keys of a yacs configuration by the values behind them: ``["MODEL.DEVICE", "cuda", …]``."""
    keys = ((each, string_value(key) or "") for key, each in zip(items, items[1:]))
    return {each: key for each, key in keys if YACS_KEY.match(key)}


def _operands(node: ast.expr) -> tuple[ast.expr, ...]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mult)):
        return node.left, node.right
    return (node.body, node.orelse) if isinstance(node, ast.IfExp) else (node,)


def _is_type(node: ast.AST) -> bool:
    """Whether an expression is the type of something, or the parameter of a test's fixture."""
    return isinstance(node, ast.Attribute) and node.attr in ("type", "param")


class _Climb:
    """The file, the vocabulary, and how many names were followed to come here.

    ``siblings`` are the values beside the one that is asked about: in a list, in the branches of a choice.
    ``column`` is its place in the row of a table, ``places`` those in each tuple around it.
    """

    def __init__(self, index: ModuleIndex, vocabulary: DeviceVocabulary, depth: int) -> None:
        self.index = index
        self.vocabulary = vocabulary
        self.depth = depth
        self.siblings = Beside()
        self.column = 0
        self.places: dict[ast.AST, int] = {}

    def of(self, node: ast.expr) -> DeviceContext:
        """The context of another value, that decides about this one."""
        depth = self.depth + 1
        key = ("context", node, self.vocabulary, depth)
        return self.index.once(key, lambda: device_context(self.index, self.vocabulary, node, depth))

    def from_node(self, node: ast.expr) -> DeviceContext:
        value: ast.AST = node
        inside: ast.AST = node
        while True:
            sink = taken_by(self.index, value)
            found = self._at(sink, inside)
            if found is not None:
                return found
            inside, value = value, sink.holder

    def _at(self, sink: Sink, inside: ast.AST) -> DeviceContext | None:
        """What a sink says of a value, of which ``inside`` is the part that was looked at before.

        None where it hands the value on.
        """
        kind, value, name = sink.kind, sink.value, sink.name
        holder: Any = sink.holder
        if kind in ("same", "called", "indexed") or (kind == "method" and name in _WHOLE_TEXT):
            return None
        if kind == "method":
            return DeviceContext(UNCLEAR, _("its method {attr}() is called", attr=name))
        if kind == "argument":
            return None if _begins_text(sink, inside) else self._argument(holder, sink)
        if kind == "choice":
            options = holder.values if isinstance(holder, ast.BoolOp) else [holder.body, holder.orelse]
            self.siblings |= self._among(holder, options)
            if isinstance(holder, ast.IfExp) and asks_for_cuda(holder.test):
                self.siblings |= beside([holder.test])
            return None
        if kind == "element":
            # The keys of a yacs configuration stand before the values: ["MODEL.DEVICE", "cuda", …].
            if key := self.index.once(("keys before", holder), lambda: _keys_before(holder.elts)).get(value):
                return self._hinted(key, _("the value of {name}", name=key))
            self.siblings |= self._among(holder, holder.elts)
            if isinstance(holder, ast.Tuple):
                self.column = self.index.once(
                    ("columns", holder), lambda: dict(zip(cast("list[ast.AST]", holder.elts), count()))
                )[value]
                self.places[holder] = self.column
            return None
        if kind == "text":
            parts = self.index.parts(holder)  # it begins the text, and ends it or is followed by a colon
            behind = parts[1:2] if parts and parts[0].expression is value else ()
            begins = any(each.expression is not None or each.raw.startswith(":") for each in behind)
            begins = begins or (len(parts) == 1 and parts[0].expression is value)
            return None if begins else DeviceContext(UNCLEAR, _("part of a longer string"))
        if kind == "operand":
            return self._in_sum(holder, value, inside)
        if kind in ("key", "value"):
            outside = self.of(holder) if self.depth < 2 else DeviceContext(UNCLEAR, _("a dictionary"))
            judged = self._dictionary_value if kind == "value" else self._dictionary_key
            return judged(holder, value, outside)
        if kind == "look-up":
            return self._key(holder)
        if kind == "assigned":
            return self._assigned(holder, value, inside)
        if kind == "compared":
            return self._compared([holder.left, *holder.comparators], value)
        if kind == "added":
            return self._hinted(name, _("value added to {name}", name=name or _("a variable")))
        if kind == "returned":
            return self._returned(holder, name)
        if kind == "iterated":
            target = holder.target
            if row := elements(target):  # which of them a value is, a row that is written there tells
                is_row = inside in self.places and self.places[inside] < len(row)
                target = row[self.places[inside]] if is_row else None
            if target is not None and isinstance(holder, (ast.For, ast.AsyncFor)):
                return self._target(target)
            return self._hinted(last_name(target), _("the values of a loop"))
        if kind == "default":  # what the parameter's name says, or is used for
            return self._hinted(name, _("the default of {arg}", arg=name))
        if kind == "annotation":
            if isinstance(holder, ast.arg):
                return self._hinted(holder.arg, _("the annotation of {arg}", arg=holder.arg))
            return self._hinted(name, _("an annotation"))
        if kind == "case":
            return self._match_case(holder)
        if kind == "unused" and isinstance(holder, ast.Expr):
            called = called_name(value)  # groups.get(ranks, "nccl"), and not the name of an option
            if called and called not in self.vocabulary.option_calls:
                return DeviceContext(UNCLEAR, _("an argument of {called}()", called=called))
        verdict, reason = _ENDS.get((kind, holder.__class__), (UNCLEAR, N_("unknown use")))
        return DeviceContext(verdict, _(reason))

    def _for_option(self, text: str, fields: str = "", place: int = 0) -> DeviceContext | None:
        """The context of a value in a longer string after an option that says a device; None for others."""
        before = [*re.split(fields, text), *[""] * place][place] if fields else text
        option = re.search(_OPTION, before)
        if option is None or not self.vocabulary.says(option[1]):
            return None
        return DeviceContext(UNCLEAR, _("a value for {name} in a longer string", name=option[1]), by=SETTLED)

    def _in_sum(self, node: ast.BinOp, value: ast.AST, inside: ast.AST) -> DeviceContext | None:
        """An operand; None for the beginning of a text, and for a list."""
        left = string_value(node.left) or string_value(getattr(node.left, "right", None)) or ""
        if value is node.right:
            fields, place = _PERCENT * isinstance(node.op, ast.Mod), [*elements(value), inside].index(inside)
            if said := self._for_option(left, fields, place):
                return said
        if isinstance(node.op, ast.Div) or (value is node.right and left.endswith("/")):
            return DeviceContext(NO, _("part of a path"))
        parts: list[ast.expr] = [node]
        for _round in range(_DEEPEST_SUM):  # of ["cpu"] + (["cuda"] if … else []) both lists
            parts = [inner for part in parts for inner in _operands(part)]
        together = [item for part in parts for item in elements(part)]
        if has_npu(self.index, node, together):
            return DeviceContext(NO, _("beside a branch for NPUs"), by=SETTLED)
        self.siblings |= beside(together)
        ends = value is node.right and isinstance(node.op, ast.Add) and not together
        if ends and not isinstance(value, ast.BinOp):
            return DeviceContext(UNCLEAR, _("end of a longer string"))
        return None

    def _assigned(self, holder: Any, value: ast.AST, inside: ast.AST) -> DeviceContext:
        if isinstance(holder, ast.Assign):
            target = holder.targets[0]
            for element, each in zip(elements(target), elements(value)):
                if each is inside and isinstance(value, ast.Tuple) and isinstance(target, ast.Tuple):
                    self.siblings, target = Beside(), element
            return self._target(target)
        # Literal["cuda", "cpu"] names values; a call, as in Annotated, may take any string.
        noted = ast.walk(holder.annotation) if isinstance(holder, ast.AnnAssign) else ()
        constants = [item for item in noted if isinstance(item, ast.Constant)]
        around = ((item, self.index.parent(item)) for item in constants)
        self.siblings |= beside(item for item, up in around if isinstance(up, (ast.Subscript, ast.Tuple)))
        found = self._target(holder.target)
        return found._replace(by="") if constants else found

    def _likely(self, reason: str, **values: object) -> DeviceContext:
        """LIKELY for a reason that names what is looked for: a device, a backend."""
        return DeviceContext(LIKELY, _(reason, noun=_(self.vocabulary.noun), **values))

    def _among(self, parent: ast.AST, siblings: Iterable[ast.expr]) -> Beside:
        """What the parts of an expression say to each of them, of which there may be thousands."""
        return self.index.once(("among", parent), lambda: beside(siblings))

    def _hinted(self, name: str, where: str, more: Beside = Beside()) -> DeviceContext:
        """What a name, and the values beside it, say."""
        every = self.siblings | more
        if name in _LISTS_OF_NAMES or self.vocabulary.says_path(name) or self.vocabulary.leaves(name):
            return DeviceContext(NO, where)
        if self.siblings.question and every.cpu:
            return DeviceContext(CERTAIN, _("{where}: choice between a GPU and the CPU", where=where))
        if name and self.vocabulary.says(name):
            known = name.lower() in self.vocabulary.keys
            read = N_("{where}, which the project uses as a {noun}")
            return self._likely(read if known else N_("{where}, named like a {noun}"), where=where)
        if every.device:
            return DeviceContext(LIKELY, _("{where}, beside another device", where=where), by=BESIDE)
        return DeviceContext(UNCLEAR, where)

    def _of_uses(self, target: ast.Name) -> tuple[DeviceContext | None, set[str], set[str]]:
        """What the first use of a name says, and the verdicts and the reasons of all."""
        found = [*map(self.of, self.index.uses_of(target))]
        return next(iter(found), None), {each.verdict for each in found}, {each.by for each in found}

    def _target(self, target: ast.expr) -> DeviceContext:
        """What is assigned is what its name is used for, as far as this module shows it."""
        if isinstance(target, ast.Name) and self.depth < 2:
            scope = self.index.scope_of(target).owner(target.id)
            key = "used as", target.id, scope, self.vocabulary, self.depth
            first, verdicts, reasons = self.index.once(key, lambda: self._of_uses(target))
            if first and verdicts == {CERTAIN}:
                goes = self._likely(N_("{id} is used only where a {noun} is expected"), id=target.id)
                return goes._replace(verdict=CERTAIN, api=first.api)
            if first and reasons == {FOREIGN}:
                return first
            if CERTAIN in verdicts:
                return self._likely(N_("{id} is used as a {noun}"), id=target.id)
            if LIKELY in verdicts and UNCLEAR not in verdicts:
                return self._likely(N_("{id} seems to be used as a {noun}"), id=target.id)
        name = last_name(target)
        where = _("the value of {name}", name=name or _("a variable"))
        owner = self.index.class_of(target)
        # CUDA = "cuda" names no device by that, nor does a member of an Enum; class Device(Enum) does.
        if name.strip("_").lower() in REPEATED or (is_enum(owner) and not self.index.function_of(target)):
            if owner is None:
                return self._hinted("", where)
            values = (each.value for each in owner.body if isinstance(each, ast.Assign))
            self.siblings |= self._among(owner, values)
            return self._hinted(without_cuda(owner.name), where)
        return self._hinted(name, where)

    def _returned(self, statement: ast.AST, name: str) -> DeviceContext:
        function, owner = self.index.function_of(statement), self.index.class_of(statement)
        if owner is not None and name in OF_OWNER:
            name = f"{without_cuda(owner.name)} {name}"
        found = Beside()
        if function is not None:
            returns = (node for node in ast.walk(function) if isinstance(node, ast.Return))
            found = self._among(function, (node.value for node in returns if node.value))
        return self._hinted(name, _("the return value of {name}()", name=name), found)

    def _called_api(self, function: ast.expr) -> str:
        """The full name of what is called; of several that it may be, one that takes a device."""
        if name := self.index.qualified_name(function):
            return name
        names = map(self.index.qualified_name, made_from(self.index, function))
        return next((name for name in names if name in self.vocabulary.apis), "")

    def _maker(self, node: ast.expr, rounds: int = _DEEPEST_CHAIN) -> str:
        """The full name of the function that made an object, or what that is a part of."""
        if not isinstance(node, ast.Name):
            return self._made_by(node, rounds)
        key = "maker", node.id, self.index.scope_of(node).owner(node.id), rounds
        return self.index.once(key, lambda: self._made_by(node, rounds))

    def _made_by(self, node: ast.expr, rounds: int) -> str:
        for each in made_from(self.index, node) if rounds else ():
            if isinstance(each, ast.Call) and (name := self.index.qualified_name(each.func)):
                return name
            inner = each.func if isinstance(each, ast.Call) else getattr(each, "value", None)
            if isinstance(inner, ast.expr):  # the value of a constant is none
                return self._maker(inner, rounds - 1)
        return ""

    def _argument(self, call: Any, sink: Sink) -> DeviceContext | None:
        """An argument by its place, or else by its name; None where the call hands the value on."""
        if not isinstance(call, ast.Call):
            return DeviceContext(UNCLEAR, _("a class's keyword"))
        vocabulary, place, name = self.vocabulary, sink.place, sink.name
        by_name = place < 0
        called, qualified = called_name(call), self._called_api(call.func)
        if called in _MOCKED:  # net.to.assert_called_with("cuda")
            called = last_name(holder_of(call))
        if by_name and called in vocabulary.option_calls and name in _OPTION_KEYWORDS:
            return self._option(call)
        if called in ("partial", "partialmethod") and place > 0:  # which call the first one
            qualified, place = self._called_api(call.args[0]), place - 1
            called = qualified.rpartition(".")[2] or bare_name(call.args[0])
        made = qualified or self._maker(call.func)  # or else it is a method of what a library made
        is_foreign = not vocabulary.foreign.isdisjoint((made, made.partition(".")[0]))
        if is_foreign and name.lower() not in vocabulary.keys:
            foreign = N_("an argument of {qualified}(), which is not a torch function")
            return DeviceContext(UNCLEAR, _(foreign, qualified=qualified or called), by=FOREIGN)
        if called == "dict" and by_name and (outside := self.of(call)).by == FOREIGN:
            return outside
        takers = vocabulary.apis.get(qualified) or vocabulary.apis.get(f".{called}") or ()
        takers = () if takers and self._takes_another(call, place) else takers
        shown = called or _("a call")
        if not by_name:
            if place in takers or "*" in takers:
                return DeviceContext(CERTAIN, f"{shown}(…)", called)
            return self._at_place(call, call.args[sink.place], called, qualified, place)
        if name in takers:
            return DeviceContext(CERTAIN, f"{called}({name}=…)", name)
        if name in vocabulary.keywords:
            certain = qualified.startswith("torch.") or called in _DEVICE_METHODS
            # What an object of the file lists is a device where something meets it: a registry only shows it.
            is_list = elements(sink.value) and isinstance(self.index.definition(call.func), ast.ClassDef)
            reason, by = f"{shown}({name}=…)", BESIDE if is_list else ""
            return DeviceContext(CERTAIN if certain else LIKELY, reason, name, by)
        if called in vocabulary.never or name == "dest":
            return DeviceContext(NO, _("an argument of {called}()", called=called), by=_CALL)
        is_fixture = (called, name) == ("fixture", "params")  # of pytest: tests get it by the function's name
        hint = getattr(self.index.parent(call), "name", name) if is_fixture else name
        return self._hinted(hint, _("the argument {name} of {called}()", name=name, called=shown))

    def _takes_another(self, call: ast.Call, place: int) -> bool:
        """Whether a method is that of a plain class of the file, and no device to it by its name."""

        def find() -> dict[str, dict[str, Function]]:
            found: dict[str, dict[str, Function]] = {}
            for owner in self.index.classes:
                for each in owner.body if not owner.bases else ():
                    if isinstance(each, FUNCTIONS):
                        found.setdefault(each.name, {})[owner.name] = each
            return found

        methods = self.index.once(("methods of plain classes",), find) if place >= 0 else {}
        same = methods.get(called_name(call), {})
        owner = holder_of(call) if same else None  # few files have such a class
        held = what_is(self.index, owner) if owner is not None else None
        if held is None or held.kind != CLASS or held.name not in same:
            return False
        return not any(map(self.vocabulary.says, given_names(self.index, same[held.name])[place : place + 1]))

    def _at_place(
        self, call: ast.Call, argument: ast.expr, called: str, qualified: str, place: int
    ) -> DeviceContext | None:
        """A positional argument of what is not known to take a device there."""
        vocabulary, owner = self.vocabulary, holder_of(call)
        if qualified.startswith("torch.cuda.") and place == 0:
            return DeviceContext(CERTAIN, f"{called}(…)")
        if called in vocabulary.option_calls:
            return self._option(call) if place or called == "Option" else None
        if called in _COMPARISONS and place < 2:
            return self._compared(call.args[:2], argument)
        if is_searched_pattern(self.index, argument) and vocabulary.says_device(call.args[1]):
            return DeviceContext(CERTAIN, _("pattern for a device name"))
        if owner is not None and called in _STRING_METHODS:
            if vocabulary.says_device(owner):
                return DeviceContext(CERTAIN, _("part of a device name"))
            return DeviceContext(UNCLEAR, _("part of another string"))
        if owner is not None and called == "format":
            values = self.index.assigned(owner) if isinstance(owner, ast.Name) else [owner]
            texts = [string_value(value) for value in values]
            if texts and not any(text is None or text.startswith("{") for text in texts):
                said = self._for_option(texts[0] or "", _FIELD, place)
                return said or DeviceContext(NO, _("part of a longer string"))
        if owner is not None and called in _CONTAINER_METHODS:
            return self._hinted(last_name(owner), _("an element of {name}", name=last_name(owner)))
        if owner is not None and called in _GETTERS and not place:
            return DeviceContext(NO, _("a key"))
        if called == "setattr" and place == 2 and vocabulary.says_device(call.args[1]):
            return self._likely(N_("value of a key named like a {noun}"))
        if called in _LOOK_UPS and place:
            named = vocabulary.says_device(call.args[place - 1])
            return self._likely(N_("default of a setting named like a {noun}")) if named else None
        if called in _HAND_ON:
            self.column = place if called == "param" else self.column
            return None
        if called == "parametrize" and place and self._is_named(call.args[0]):
            return self._likely(N_("test parameter named like a {noun}"))
        if called in vocabulary.never:
            return DeviceContext(NO, _("an argument of {called}()", called=called), by=_CALL)
        method = OF_ANY + called if owner is not None and called else ""
        if self.index.neighbours and self.index.neighbours.taker(qualified or method) == place:
            return self._likely(N_("argument of {called}() named like a {noun}"), called=called)
        shown = called or _("a call")
        if isinstance(self.index.parent(call), ast.withitem) and _AUTOCAST.search(self.index.text):
            reason = _("context manager of with, in a file that uses autocast: {called}()", called=shown)
            return DeviceContext(LIKELY, reason)
        verdict = LIKELY if called and vocabulary.says(called) else UNCLEAR
        return DeviceContext(verdict, _("an argument of {called}()", called=shown))

    def _is_named(self, names: ast.expr) -> bool:
        """Whether the column of a test's table in which a value is has the name of a device."""
        columns = [string_value(each) for each in elements(names)] or (string_value(names) or "").split(",")
        if not 1 < len(columns) > self.column:
            return self.vocabulary.says_device(names)
        return self.vocabulary.says((columns[self.column] or "").strip())

    def _option(self, call: ast.Call) -> DeviceContext:
        """The default or a choice of a command-line option or a field."""
        # What stands behind a name may be the default, or its description.
        named = [each for each in call.args if (string_value(each) or "").startswith("-")]
        first = call.args[:1] if called_name(call) != "Option" else []
        given = [*(named or first), *(k.value for k in call.keywords if k.arg in ("dest", "name"))]
        names = [text for text in map(string_value, given) if text is not None]
        if self._chooses_key(call):
            return DeviceContext(UNCLEAR, _("a choice that is the key of a dictionary"))
        if any(self.vocabulary.says(name.strip("-").replace("-", "_")) for name in names):
            return self._likely(N_("option named like a {noun} ({names})"), names=names[0])
        if any(map(self.vocabulary.leaves, names)):
            return DeviceContext(UNCLEAR, _("the option {names}", names=names[0]))
        offered = [*call.args[1:], *(k.value for k in call.keywords if k.arg in ("default", "choices"))]
        choices = beside(each for value in offered for each in elements(value) or [value])
        if (self.siblings | choices).device:
            return DeviceContext(LIKELY, _("an option that also offers other devices"))
        if names:
            return DeviceContext(UNCLEAR, _("the option {names}", names=names[0]))
        return device_context(self.index, self.vocabulary, call, self.depth)

    def _chooses_key(self, call: ast.Call) -> bool:
        """Whether an option offers the keys of a dictionary, of which some are no devices or backends."""
        texts = {string_value(each) for each in elements(argument_of(call, "choices"))} - {None}
        if all(is_device_or_backend(str(text)) for text in texts):
            return False
        around = map(self.index.parent, self.index.strings)
        tables = (each for each in around if isinstance(each, ast.Dict))
        return any(texts <= set(map(string_value, table.keys)) for table in tables)

    def _compared(self, operands: Iterable[ast.expr], child: ast.AST) -> DeviceContext:
        others = [each for each in operands if each is not child and not isinstance(each, ast.Constant)]
        if any(isinstance(each, ast.Subscript) and isinstance(each.slice, ast.Slice) for each in others):
            reason = _("compared with a slice whose length would have to change, too")
            return DeviceContext(NO, reason, by=SETTLED)
        if any(self.vocabulary.says_device(other) for other in others):
            return DeviceContext(CERTAIN, _("compared with a device or a backend"))
        if getattr(self.index.function_of(child), "name", "") in _OF_ATTRIBUTES:
            return DeviceContext(NO, _("a comparison"))
        if any(map(_is_type, others)):
            return DeviceContext(LIKELY, _("compared with a type"))
        if any(self.vocabulary.leaves(last_name(other)) for other in others):
            return DeviceContext(NO, _("a comparison"))
        if self._among(child, elements(child)).device:
            return DeviceContext(LIKELY, _("compared together with other devices"), by=BESIDE)
        return DeviceContext(UNCLEAR, _("a comparison"))

    def _match_case(self, pattern: ast.AST) -> DeviceContext:
        match: Any = self.index.parent(self.index.statement_of(pattern))  # Python 3.9 has no ast.Match
        around = filter(None, (getattr(each, "cls", None) for each in self.index.above(pattern)))
        is_part = "torch.device" in map(self.index.qualified_name, around)  # case torch.device(type="cuda")
        if is_part or self.vocabulary.says_device(match.subject):
            return DeviceContext(CERTAIN, _("a case of a device or a backend"))
        patterns: Iterable[Any] = (each for case in match.cases for each in ast.walk(case.pattern))
        values = (each.value for each in patterns if each.__class__.__name__ == "MatchValue")
        if self._among(match, values).device:
            by = "" if _is_type(match.subject) else BESIDE
            return DeviceContext(LIKELY, _("a case beside other devices"), by=by)
        return DeviceContext(UNCLEAR, _("a match case"))

    def _dictionary_value(self, node: ast.Dict, child: ast.AST, outside: DeviceContext) -> DeviceContext:
        if outside.verdict == CERTAIN or outside.by == FOREIGN:
            return outside
        key = keys_of(self.index, node)[child]
        if key is not None and self.vocabulary.says_device(key):
            return self._likely(N_("value of a key named like a {noun}"))
        where = _("a dictionary's value")
        return DeviceContext(NO if self.vocabulary.leaves(string_value(key) or "") else UNCLEAR, where)

    def _dictionary_key(self, node: ast.Dict, child: ast.AST, outside: DeviceContext) -> DeviceContext:
        holder = self.index.parent(node)
        is_map_location = isinstance(holder, ast.keyword) and holder.arg == "map_location"
        if outside.api in ("map_location", "load") or is_map_location:
            of_others = self.index.once(("numbers", node), lambda: self._numbers_of_others(node))
            if self.index.segment(child).partition(":")[2] in of_others:
                return DeviceContext(NO, _("the device of a checkpoint that was saved on CUDA"))
            reason = _(
                "a key of map_location: it stays for checkpoints from CUDA, and a key for NPUs is added"
            )
            return DeviceContext(CERTAIN, reason, "map_location")
        value = values_of(self.index, node)[child]
        if self.index.qualified_name(value).startswith("torch.cuda."):
            return DeviceContext(LIKELY, _("key of a function of the device"))
        if self._maps_devices(child, value):
            return DeviceContext(LIKELY, _("a dictionary's key, beside other devices"))
        if outside.verdict != NO and self._among(node, filter(None, node.keys)).device:
            return DeviceContext(UNCLEAR, _("a dictionary's key, beside other devices"))
        return DeviceContext(NO, _("a dictionary's key"))

    def _numbers_of_others(self, node: ast.Dict) -> set[str]:
        """What stands behind the colon in the keys that are no CUDA devices: ``"npu:0"``."""
        keys = map(self.index.segment, filter(None, node.keys))
        return {key.partition(":")[2] for key in keys if "cuda" not in key}

    def _maps_devices(self, key: ast.AST, value: ast.expr) -> bool:
        """Whether a key changes with its value, wherever it goes: ``{"cuda:0": f"cuda:{rank}"}``."""
        named = string_value(value) is None and self.vocabulary.says_device(value)
        maps = named or _QUOTED.search(self.index.segment(value))
        return bool(maps and _NUMBERED.match(self.index.segment(key)))

    def _key(self, node: ast.Subscript) -> DeviceContext:
        around = self.index.parent(node)
        if last_name(node.value) != "Literal":
            if isinstance(around, ast.Assign) and self._maps_devices(node.slice, around.value):
                return DeviceContext(LIKELY, _("a dictionary's key, beside other devices"))
            return DeviceContext(NO, _("a key"))
        if isinstance(around, ast.arg):
            self.siblings = Beside()  # what the parameter is used for decides, not the other choices
            return self._hinted(around.arg, _("a Literal"))
        name = getattr(around, "arg", "") or last_name(getattr(around, "target", None))
        return self._hinted(name, _("a Literal"))._replace(by="")
