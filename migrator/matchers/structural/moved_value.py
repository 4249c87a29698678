"""Strings that name a device, a backend or a variable of another framework, or of a library with own names.

Where such a string goes decides, as for torch's devices; here the places are few, and all are the rule's.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Optional

from migrator.findings.finding import Safety
from migrator.matchers.context import FileContext, Match, found
from migrator.matchers.packs import Options, Rule
from migrator.names.conditions import has_npu_branch
from migrator.names.goes_to import Sink, behind_choices, kept_as, taken_by
from migrator.names.index import ModuleIndex
from migrator.names.strings import replace_text
from migrator.names.tree import called_name, elements, holder_of, last_name, string_value

_OF_OPTIONS = ("add_argument", "add_option", "option", "DEFINE_string", "DEFINE_enum", "Option", "Argument")
_SAME_VALUE = ("lower", "upper", "strip")
_OF_MEMBERS = ("name", "value")  # what members of an Enum have
_CASES: tuple[Callable[[str], str], ...] = (str, str.lower, str.upper)
_READS = ("getenv", "get", "pop", "setdefault", "getattr")


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
        if new is not None and isinstance(node, ast.Constant):
            safety = _place(index, rule.options, node, new)
            if safety is not None and not has_npu_branch(index, node):
                edits = replace_text(index, node, str(node.value), new, 1)
                yield found(context, rule, node, api=str(node.value), edits=edits, safety=safety)


def _case(index: ModuleIndex, node: ast.AST) -> Callable[[str], str]:
    """How a string is written: as what it is compared with, by a call of ``lower()`` or ``upper()``."""
    parent = behind_choices(index, node).holder
    called = set(map(called_name, _operands(parent))) if isinstance(parent, ast.Compare) else set()
    return next((case for case in (str.lower, str.upper) if case.__name__ in called), str)


def _operands(compare: ast.Compare) -> list[ast.expr]:
    return [compare.left, *compare.comparators]


def _place(index: ModuleIndex, options: MovedOptions, node: ast.Constant, new: str) -> Optional[Safety]:
    """``safe`` for such a value for sure, ``unsafe`` where its holder's name says so, else None."""
    sink = taken_by(index, node)
    if options.environment:
        return "unsafe" if _is_variable(index, sink) else None
    while sink.kind in ("choice", "element"):
        if new in map(string_value, elements(sink.holder)):
            return None  # it is a choice already
        sink = taken_by(index, sink.holder)
    holder, value = sink.holder, sink.value
    if isinstance(holder, ast.Call):
        return _in_call(index, options, holder, sink)
    if isinstance(holder, ast.Compare):
        says = any(_is_compared(index, options, each) for each in _operands(holder) if each is not value)
    else:
        says = kept_as(index, value) in options.names
    return "unsafe" if says else None


def _in_call(index: ModuleIndex, options: MovedOptions, call: ast.Call, sink: Sink) -> Optional[Safety]:
    called, keyword = called_name(call), sink.name
    taken, _, place = options.arguments.get(index.qualified_name(call.func), "").partition(" ")
    if taken:
        return "safe" if (keyword == taken if keyword else place == str(sink.place)) else None
    if called in _OF_OPTIONS:
        # An option's name is device_target for --device-target.
        texts = (string_value(each) or "" for each in call.args if each is not sink.value)
        named = any(text.lstrip("-").replace("-", "_") in options.names for text in texts)
        says = named and keyword in ("default", "choices", "const", "")
    elif not keyword and called in _READS and sink.place > 0:
        says = _says(options, call)  # the value where there is none
    else:
        says = keyword in options.names
    return "unsafe" if says else None


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
        if called_name(node) == "str" and node.args:
            return _says(options, node.args[0])
        asks = called_name(node) in (*options.asked, *_READS)
        return asks and any((string_value(each) or "").lower() in options.names for each in node.args)
    return last_name(node) in options.names


def _is_compared(index: ModuleIndex, options: MovedOptions, node: ast.expr) -> bool:
    """Whether an expression is such a value, or a variable whose name says nothing and that holds one."""
    node = _value_of(node)
    if isinstance(node, ast.Name) and node.id not in options.names:
        values = index.assigned(node)
        return bool(values) and all(_says(options, each) for each in values)
    return _says(options, node)


def _is_variable(index: ModuleIndex, sink: Sink) -> bool:
    """Whether a string names a variable where the environment is read or set."""
    holder, asked = sink.holder, list[Optional[ast.expr]]()
    if isinstance(holder, ast.Subscript) and sink.kind == "look-up":
        asked = [holder.value]
    elif isinstance(holder, ast.Call) and sink.place == 0:
        if index.qualified_name(holder.func) in ("os.getenv", "os.putenv"):
            return True
        asked = [holder_of(holder)] if called_name(holder) in _READS else []
    elif isinstance(holder, ast.Compare) and holder.left is sink.value:
        asked = [*holder.comparators]
    return any(each is not None and index.qualified_name(each) == "os.environ" for each in asked)
