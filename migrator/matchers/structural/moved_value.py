"""Strings that name a device, a backend or a variable of another framework, or of a library with own names.

Where such a string goes decides, as for torch's devices; here the places are few, and all are the rule's.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Optional

from migrator.findings.finding import Safety
from migrator.matchers.context import FileContext, Match, found
from migrator.matchers.packs import Options, Rule
from migrator.names.index import ModuleIndex
from migrator.names.npu_branches import has_npu_branch
from migrator.names.strings import replace_text
from migrator.names.tree import called_name, given_as, holder_of, last_name, string_value

_OF_OPTIONS = ("add_argument", "add_option", "option", "DEFINE_string", "DEFINE_enum", "Option", "Argument")
_SAME_VALUE = ("lower", "upper", "strip")
_OF_MEMBERS = ("name", "value")  # what members of an Enum have
_CASES: tuple[Callable[[str], str], ...] = (str, str.lower, str.upper)
_READS = ("getenv", "get", "pop", "setdefault")


@dataclass(frozen=True)
class MovedOptions(Options):
    """``values``: what is written instead of each string.

    ``arguments`` are the APIs that take it, each with the argument's keyword and, where it may stand without,
    its place: ``device_target 0``. ``names`` are options, variables, keys and members that hold it, and
    ``asked`` functions that give it for such a name. ``environment``: it is the name of a variable, and
    stands where the environment is read or set.
    """

    values: dict[str, str] = field(default_factory=dict)
    arguments: dict[str, str] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    environment: bool = False


def find(context: FileContext, rule: Rule[MovedOptions]) -> Iterator[Match]:
    """The strings that a rule has another one for; none in code that has a case of its own for NPUs."""
    index = context.index
    by_case = {case: {case(old): case(new) for old, new in rule.options.values.items()} for case in _CASES}
    for node in index.strings:
        new = by_case[_case(index, node)].get(string_value(node) or "")
        if new is None or not isinstance(node, ast.Constant):
            continue
        safety = _place(index, rule.options, node, new)
        if safety is None or has_npu_branch(index, node):
            continue
        edits = replace_text(index, node, str(node.value), new, 1)
        yield found(context, rule, node, api=str(node.value), edits=edits, safety=safety)


def _case(index: ModuleIndex, node: ast.AST) -> Callable[[str], str]:
    """How a string is written: as what it is compared with, by a call of ``lower()`` or ``upper()``."""
    parent = index.parent(node)
    while isinstance(parent, (ast.List, ast.Tuple, ast.Set)):
        parent = index.parent(parent)
    others = [parent.left, *parent.comparators] if isinstance(parent, ast.Compare) else []
    called = set(map(called_name, others))
    return next((case for case in (str.lower, str.upper) if case.__name__ in called), str)


def _place(index: ModuleIndex, options: MovedOptions, node: ast.Constant, new: str) -> Optional[Safety]:
    """``safe`` for such a value for sure, ``unsafe`` where its holder's name says so, else None."""
    if options.environment:
        return "unsafe" if _is_variable(index, node) else None
    child: ast.AST = node
    parent = index.parent(child)
    while parent is not None and _hands_on(parent, child):
        if isinstance(parent, (ast.List, ast.Tuple, ast.Set)) and new in map(string_value, parent.elts):
            return None  # it is a choice already
        child, parent = parent, index.parent(parent)
    if isinstance(parent, ast.keyword):
        return _in_call(index, options, parent.value, index.parent(parent), parent.arg or "")
    if isinstance(parent, ast.Call):
        return _in_call(index, options, child, parent, "")
    if isinstance(parent, ast.Compare):
        others = (each for each in (parent.left, *parent.comparators) if each is not child)
        return "unsafe" if any(_is_compared(index, options, each) for each in others) else None
    return "unsafe" if given_as(parent, child) in options.names else None


def _hands_on(parent: ast.AST, child: ast.AST) -> bool:
    """Whether a value goes on to what is around it: a list of choices, a conditional value."""
    if isinstance(parent, ast.IfExp):
        return child is not parent.test
    return isinstance(parent, (ast.List, ast.Tuple, ast.Set, ast.BoolOp))


def _in_call(
    index: ModuleIndex, options: MovedOptions, value: ast.AST, call: Optional[ast.AST], keyword: str
) -> Optional[Safety]:
    if not isinstance(call, ast.Call):
        return None
    taken, _, place = options.arguments.get(index.qualified_name(call.func), "").partition(" ")
    if taken:
        given = keyword == taken if keyword else place.isdigit() and call.args[int(place) :][:1] == [value]
        return "safe" if given else None
    if called_name(call) in _OF_OPTIONS:
        texts = (string_value(each) for each in call.args if each is not value)
        named = any(text and _plain(text) in options.names for text in texts)
        return "unsafe" if named and keyword in ("default", "choices", "const", "") else None
    if not keyword and called_name(call) in (*_READS, "getattr") and value in call.args[1:]:
        return "unsafe" if _says(options, call) else None  # the value where there is none
    return "unsafe" if keyword in options.names else None


def _plain(text: str) -> str:
    """An option's name: ``device_target`` for ``--device-target``."""
    return text.lstrip("-").replace("-", "_")


def _value_of(node: ast.expr) -> ast.expr:
    """What has the value that an expression gives: ``x`` of ``x.value``, ``x.lower()``."""
    if isinstance(node, ast.Attribute) and node.attr in _OF_MEMBERS:
        return _value_of(node.value)
    holder = holder_of(node) if isinstance(node, ast.Call) and called_name(node) in _SAME_VALUE else None
    return node if holder is None else _value_of(holder)


def _says(options: MovedOptions, node: ast.expr) -> bool:
    """Whether an expression is such a value, by its name, or by what it asks for."""
    node = _value_of(node)
    if isinstance(node, ast.Subscript):
        return (string_value(node.slice) or "") in options.names
    if isinstance(node, ast.Call):
        called = called_name(node)
        if called == "str" and node.args:
            return _says(options, node.args[0])
        asks = called in (*options.asked, *_READS, "getattr")
        return asks and any((string_value(each) or "").lower() in options.names for each in node.args)
    return last_name(node) in options.names


def _is_compared(index: ModuleIndex, options: MovedOptions, node: ast.expr) -> bool:
    """Whether an expression is such a value, or a variable whose name says nothing and that holds one."""
    node = _value_of(node)
    if isinstance(node, ast.Name) and node.id not in options.names:
        values = index.assigned(node)
        return bool(values) and all(_says(options, each) for each in values)
    return _says(options, node)


def _is_variable(index: ModuleIndex, node: ast.Constant) -> bool:
    """Whether a string names a variable where the environment is read or set."""
    parent = index.parent(node)
    if isinstance(parent, ast.Subscript) and parent.slice is node:
        return index.qualified_name(parent.value) == "os.environ"
    if isinstance(parent, ast.Call) and parent.args[:1] == [node]:
        return index.qualified_name(parent.func) in ("os.getenv", "os.putenv") or (
            called_name(parent) in _READS
            and isinstance(parent.func, ast.Attribute)
            and index.qualified_name(parent.func.value) == "os.environ"
        )
    if isinstance(parent, ast.Compare) and parent.left is node:
        return any(index.qualified_name(each) == "os.environ" for each in parent.comparators)
    return False
