"""Whether an expression is a whole number, and the device string that stands for the NPU of that number."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable

from migrator.findings.finding import Edit
from migrator.matchers.context import instead_of, put_around
from migrator.names.index import ModuleIndex, parsed
from migrator.names.made_from import given_by_each, parameter_of
from migrator.names.outline import Binding
from migrator.names.tree import argument_of, bare_name, elements
from migrator.names.what_is import options_like

Sure = Callable[[ast.AST], bool]  # whether an expression is an int for certain

_DEEPEST = 5
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)
# They give the function that they start its rank, before what they are given for it.
_STARTS_RANKS = ("torch.multiprocessing.spawn", "torch.multiprocessing.start_processes")
_NUMBER = r"(?i)(?:^|_)(?:rank|(?:gpu|cuda|device|dev)_?(?:id|idx|index|num|number))$"
_NUMBERS = r"(?i)(?:^|_)(?:gpus|(?:gpu|cuda|device|dev)_?(?:ids|list|indices))$"


def surely_int(index: ModuleIndex, integers: Iterable[str], node: ast.AST, depth: int = 0) -> bool:
    """Whether an expression is an int for certain; ``integers`` are functions that give one."""
    if isinstance(node, ast.Constant):
        return type(node.value) is int
    if depth > _DEEPEST:
        return False

    def sure(each: ast.AST) -> bool:
        return surely_int(index, integers, each, depth + 1)

    if isinstance(node, ast.Call):
        is_int = isinstance(node.func, ast.Name) and node.func.id == "int"
        return is_int or index.qualified_name(node.func) in integers
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, _ARITHMETIC) and sure(node.left) and sure(node.right)
    if isinstance(node, ast.Name):
        bindings = index.bindings(node)
        return bool(bindings) and all(_int_binding(index, sure, node, each) for each in bindings)
    if isinstance(node, ast.Attribute):
        stored = index.stored_as(node)
        if stored:
            return all(map(sure, stored))
        return options_like(node.value) and node.attr in index.once(("int options",), lambda: _options(index))
    return False


def likely_int(index: ModuleIndex, node: ast.AST, depth: int = 0) -> bool:
    """Whether an expression's name says that it is a device's number, and nothing in the file denies it."""
    if isinstance(node, ast.Subscript):
        return bool(re.search(_NUMBERS, bare_name(node.value))) and not isinstance(node.slice, ast.Slice)
    if not re.search(_NUMBER, bare_name(node)) or depth > _DEEPEST:
        return False

    def may_be(each: ast.AST) -> bool:
        return surely_int(index, (), each) or likely_int(index, each, depth + 1)

    if isinstance(node, ast.Attribute):
        return all(map(may_be, index.stored_as(node)))
    if not isinstance(node, ast.Name):
        return False
    return all(
        binding.kind == "param"
        if binding.value is None
        else binding.kind in ("param", "assign") and may_be(binding.value)
        for binding in index.bindings(node)
    )


def as_device(index: ModuleIndex, node: ast.AST) -> list[Edit]:
    """The edits that make a whole number the name of a device: ``"npu:0"``, ``f"npu:{rank}"``."""
    source = index.segment(node)
    if isinstance(node, ast.Constant):
        return [instead_of(index, node, f'"npu:{source}"')]
    if '"' in source or "\\" in source or "\n" in source:
        return put_around(index, node, '"npu:" + str(', ")")
    return put_around(index, node, 'f"npu:{', '}"')


def _int_binding(index: ModuleIndex, sure: Sure, name: ast.Name, binding: Binding) -> bool:
    if isinstance(binding.node, (ast.For, ast.AsyncFor)):
        index.expand(binding.node)
        counts = binding.node.iter
        is_range = isinstance(counts, ast.Call) and bare_name(counts.func) == "range"
        return is_range and isinstance(binding.node.target, ast.Name)
    if binding.kind == "param":
        annotation = binding.annotation
        if annotation is not None:
            return isinstance(annotation, ast.Name) and annotation.id == "int"
        return _given_ints(index, sure, name, binding)
    if binding.kind != "assign" or binding.value is None:
        return False
    index.expand(binding.node)
    return sure(binding.value)


def _given_ints(index: ModuleIndex, sure: Sure, name: ast.Name, binding: Binding) -> bool:
    """Whether a function is named in its file, and given an int as that parameter wherever it is."""
    parameter = parameter_of(index, name)
    if parameter is None or isinstance(index.parent(parameter.function), ast.ClassDef):
        return False
    uses = index.uses_of(parameter.function)
    for use, value in zip(uses, given_by_each(index, parameter)):
        if index.call_of(use) is None:
            starts = index.parent(use)
            if not isinstance(starts, ast.Call) or index.qualified_name(starts.func) not in _STARTS_RANKS:
                return False
            if parameter.place == 0:
                continue
            value = next(iter(elements(argument_of(starts, "args", 1))[parameter.place - 1 :]), None)
        value = value or binding.value
        if value is None or not sure(value):
            return False
    return bool(uses)


def _options(index: ModuleIndex) -> frozenset[str]:
    """The options of the file's own parsers that are whole numbers and always have a value."""
    if "add_argument" not in index.text:
        return frozenset()
    from migrator.project.parser_options import WORDS, options

    own, found = parsed(index.text, WORDS), set[str]()
    for option in options(own) if own is not None else ():
        if option.call is not None and option.takes == 1:
            of_type, required = argument_of(option.call, "type"), argument_of(option.call, "required")
            has_value = type(option.default) is int or getattr(required, "value", False)
            if isinstance(of_type, ast.Name) and of_type.id == "int" and has_value:
                found.add(option.dest)
    return frozenset(found)
