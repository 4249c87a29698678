"""Rules with ``on``: the uses of an API that they look at, and what their first case that holds says."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from functools import cached_property, partial
from itertools import chain, takewhile
from typing import TYPE_CHECKING, NewType, Union

from migrator.light import Declared
from migrator.matchers.context import FileContext, Match, found
from migrator.matchers.packs import Rule
from migrator.matchers.query.shapes import Comparison, shape
from migrator.names.conditions import IMPORT_ERRORS, is_caught
from migrator.names.device_strings import written
from migrator.names.index import ModuleIndex
from migrator.names.tree import (
    argument_of,
    attributes,
    bare_name,
    called_name,
    holder_of,
    is_read,
    only_target,
    root,
)

if TYPE_CHECKING:  # it asks for what is here
    from migrator.matchers.query.parsing import Case


class Use(Declared):
    """A node that a rule's ``match`` fits, and the API's name there.

    ``letters`` are what the letters of shapes stand for.
    """

    context: FileContext
    rule: Rule
    on: str
    node: ast.expr
    api: str
    letters: dict[str, ast.expr] = field(default_factory=dict)

    @cached_property
    def call(self) -> ast.Call:
        """The call where the node is one; anything else has the answers of a call without arguments."""
        if self.on == "call" and isinstance(self.node, ast.Call):
            return self.node
        return ast.Call(self.node, [], [])

    @property
    def index(self) -> ModuleIndex:
        """The file's index."""
        return self.context.index

    @property
    def is_of_method(self) -> bool:
        """Whether the first of the rule's ``args`` is what the method belongs to that is called."""
        if "self" not in self.rule.positions:
            return False
        return self.api.startswith(".") or not self.rule.fits(self.api)

    def argument(self, name: str) -> ast.expr | None:
        """The value of one of the rule's ``args``, or of a letter; None where the call does not write it."""
        if name in self.letters:
            return self.letters[name]
        place = self.rule.positions.get(name)
        if self.is_of_method:
            if name == "self":
                return holder_of(self.call)
            place = place - 1 if place else None
        given = self.call.args[: (place or 0) + 1]
        if any(isinstance(each, ast.Starred) for each in given):
            place = None
        return argument_of(self.call, name, place)

    def keyword(self, name: str) -> ast.keyword | None:
        """An argument that is given by its keyword."""
        return next((each for each in self.call.keywords if each.arg == name), None)


Call = Use  # of a call, a decorator or a base class: the only ones that have arguments
# The types that conditions and actions declare for what a rule writes.
Argument = NewType("Argument", str)  # one of the rule's args
Regex = NewType("Regex", str)
Shape = NewType("Shape", str)
Template = NewType("Template", str)
FIELD = re.compile(r"\{(\w+)\}")
Literal = Union[str, int, float, bool, None]


def uses(context: FileContext, rules: list[Rule]) -> Iterator[Use]:
    """The uses of what rules match, in the order of the text of each sort."""
    for on, sort in _SORTS.items():
        wanted = [rule for rule in rules if on in rule.on]
        if wanted:
            yield from sort(context, wanted)


def _calls(context: FileContext, rules: list[Rule]) -> Iterator[Use]:
    index = context.index
    for call in sorted(index.calls, key=index.start):
        name = index.qualified_name(call.func)
        method = f".{call.func.attr}" if isinstance(call.func, ast.Attribute) else ""
        name = name or (of_base(index, call.func) if method.startswith(".__") else "")
        inherited = "" if name or method else inherited_from(index, call.func)
        for rule in rules:
            if name and context.fits(rule, name):
                yield Use(context, rule, "call", call, name)
            elif inherited and context.fits(rule, f"{inherited}.__init__"):
                yield Use(context, rule, "call", call, inherited)
            elif method in rule.match:
                # A function of a module, such as np.double, is no method; one of its classes has some.
                owner = name.split(".")[-2:][0]
                if not (name and index.is_bound_by("import", root(call.func)) and not owner[:1].isupper()):
                    yield Use(context, rule, "call", call, name or method)


def of_base(index: ModuleIndex, function: ast.expr) -> str:
    """The name of ``super().__init__`` as that of the first base of the class; empty for any other call."""
    owner = index.class_of(function)
    if called_name(getattr(function, "value", None)) != "super" or owner is None or not owner.bases:
        return ""
    base = owner.bases[0]
    name = index.qualified_name(base.value if isinstance(base, ast.Subscript) else base)
    return f"{name}.{bare_name(function)}" if name else ""


def inherited_from(index: ModuleIndex, function: ast.expr) -> str:
    """The name of the base of a class of the file that takes what its base takes; empty for any other."""
    owner = index.definition(function)
    if not isinstance(owner, ast.ClassDef) or not owner.bases:
        return ""
    if any(getattr(each, "name", "") in ("__init__", "__new__") for each in owner.body):
        return ""
    return index.qualified_name(owner.bases[0]) or inherited_from(index, owner.bases[0])


def _named(on: str, context: FileContext, rules: list[Rule]) -> Iterator[Use]:
    """Bases of classes, and decorators that are no calls."""
    bases = (base for owner in context.index.classes for base in owner.bases)
    every = (each for function in context.index.functions for each in function.decorator_list)
    decorators = (each for each in every if isinstance(each, (ast.Attribute, ast.Name)))
    for node in bases if on == "base" else decorators:
        name = context.index.qualified_name(node)
        yield from (Use(context, rule, on, node, name) for rule in rules if name and context.fits(rule, name))


def _names(context: FileContext, rules: list[Rule]) -> Iterator[Use]:
    for rule in rules:
        yield from (Use(context, rule, "name", node, name) for node, name in context.uses_of(rule))


def _members(context: FileContext, rules: list[Rule]) -> Iterator[Use]:
    for node in (each for ref in context.index.refs for each in attributes(ref)):
        for rule in rules:
            if f".{node.attr}" in rule.match and is_read(node):
                yield Use(context, rule, "member", node, f".{node.attr}")


def _strings(context: FileContext, rules: list[Rule]) -> Iterator[Use]:
    """Strings with a phrase of a rule; of several the longest one comes first."""
    phrases = sorted(((each, rule) for rule in rules for each in rule.match), key=lambda one: -len(one[0]))
    for node in context.index.strings:
        if not isinstance(context.index.parent(node), ast.JoinedStr):
            text = written(context.index, node)
            held = ((phrase, rule) for phrase, rule in phrases if phrase in text)
            yield from (Use(context, rule, "string", node, phrase) for phrase, rule in held)


_NAMES = (ast.Name, ast.Attribute)  # shapes that expressions of any kind may fit


def _expressions(context: FileContext, rules: list[Rule]) -> Iterator[Use]:
    index, seen = context.index, set[ast.AST]()
    words = {word for rule in rules for word in rule.words}
    shapes = [(rule, text, shape(text)) for rule in rules for text in rule.match]
    fitting: dict[type[ast.expr], list[tuple[Rule, str, ast.expr]]] = {}  # those for expressions of a kind

    def around(inner: ast.AST) -> Iterator[ast.AST]:
        return takewhile(lambda up: not isinstance(up, ast.stmt), chain([inner], index.above(inner)))

    # What is made with such a name is read elsewhere, too, under a name that no rule knows.
    named = (each for each in (*index.refs, *index.calls) if (called_name(each) or bare_name(each)) in words)
    made = (up for up in dict.fromkeys([*around(each)][-1] for each in named) if isinstance(up, ast.expr))
    reads = (read for each in made for read in index.reads_of(each))
    for inner in (*index.refs, *index.calls, *reads):
        for node in around(inner):
            if node in seen:
                break
            seen.add(node)
            if not isinstance(node, ast.expr) or not is_read(node):
                continue
            if (kind := node.__class__) not in fitting:
                fitting[kind] = [each for each in shapes if isinstance(each[2], (kind, *_NAMES))]
            for rule, text, known in fitting[kind]:  # letters of ``A @ _`` and ``_ @ A`` are other operands
                letters: dict[str, ast.expr] = {}
                if _may_fit(known, node) and Comparison(index, letters).holds((text,), node):
                    yield Use(context, rule, "expression", node, index.segment(node), letters)


def _may_fit(known: ast.expr, node: ast.expr) -> bool:
    """A quick look, as most expressions call another method."""
    if isinstance(known, ast.BinOp) and isinstance(node, ast.BinOp):
        return known.op.__class__ is node.op.__class__
    if not (isinstance(known, ast.Call) and isinstance(node, ast.Call)):
        return True
    methods = isinstance(known.func, ast.Attribute) and isinstance(node.func, ast.Attribute)
    return not methods or bare_name(known.func) in (bare_name(node.func), "_")


_SORTS: dict[str, Callable[[FileContext, list[Rule]], Iterator[Use]]] = {
    "base": partial(_named, "base"),
    "call": _calls,
    "decorator": partial(_named, "decorator"),
    "name": _names,
    "member": _members,
    "string": _strings,
    "expression": _expressions,
}


def is_replaced(context: FileContext, rule: Rule, node: ast.expr) -> bool:
    """Whether a name stands for something else where the library is missing: ``except`` binds it again."""
    if is_caught(context.index, node, IMPORT_ERRORS):
        return True
    used = root(node.func if isinstance(node, ast.Call) else node)
    others = context.index.bindings(used) if isinstance(used, ast.Name) else []
    defined = any(other.kind in ("class", "def") for other in others)
    is_other = defined or any(other.kind == "import" and not rule.fits(other.name) for other in others)
    return len(others) > 1 and is_other


def filled(use: Use, text: str, more: Mapping[str, str] = {}) -> str:
    """A text with the values of its fields; one that is not known stays."""

    def value(field: re.Match[str]) -> str:
        name = field[1]
        known = {"api": use.api, "name": use.api.rpartition(".")[2], **more}
        is_known = name in use.rule.args or name in use.letters
        node: ast.AST | None = use.argument(name) if is_known else None
        if name == "target":
            node = only_target(use.index.parent(use.node))
        elif name == "function":
            node = use.call.func
        elif name == "module":
            return use.index.segment(use.call.func).rpartition(".")[0]
        return use.index.segment(node) if node is not None else known.get(name, field[0])

    return FIELD.sub(value, text) if "{" in text else text


def find(context: FileContext, rules: list[Rule]) -> Iterator[Match]:
    """What the rules say of the uses of their APIs."""
    done: set[tuple[str, ast.AST | None]] = set()  # what has one finding of a rule
    for use in uses(context, rules):
        plan, once, code = use.rule.plan, use.rule.once, use.rule.code
        function = use.index.function_of(use.node) if once == "function" else None
        place = code, None if once == "file" else function or use.node
        if use.on == "string":  # of all rules it has one finding
            place = "", use.node
        if place not in done and plan.where(use):
            case = next((each for each in plan.cases if each.where(use)), None)
            if case is not None and not case.says.skip:
                done.add(place)
                yield _match(use, case)


def _match(use: Use, case: Case) -> Match:
    made, says = [action(use) for action in case.do], case.says
    edits = [edit for each in made for edit in each or ()] if None not in made else []
    api = filled(use, says.api)
    fields = {**says.fields, "api": api}
    return found(
        use.context,
        use.rule,
        (use.argument(says.at) if says.at else None) or use.node,
        api=api,
        edits=sorted(edits),
        message=filled(use, says.message or use.rule.message, fields),
        advice=filled(use, says.advice or use.rule.advice, fields),
        severity=says.severity,
        safety=says.fix,
        operation="INSERT" if case.inserts else "MODIFY",
        form=("function" if use.api.startswith(".") else "torch") if use.on in ("call", "decorator") else "",
    )
