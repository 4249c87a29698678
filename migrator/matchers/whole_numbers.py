"""Whether an expression is a whole number, and the device string that stands for the NPU of that number."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from migrator.findings.finding import Edit
from migrator.matchers.context import instead_of, put_around
from migrator.names.index import ModuleIndex
from migrator.names.scopes import Binding


def surely_int(index: ModuleIndex, integers: Iterable[str], node: ast.AST, depth: int = 0) -> bool:
    """Whether an expression is an int for certain; ``integers`` are functions that give one."""
    if isinstance(node, ast.Constant):
        return type(node.value) is int
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id == "int":
            return True
        return index.qualified_name(node.func) in integers
    if isinstance(node, ast.Name) and depth < 3:
        bindings = index.bindings(node)
        return bool(bindings) and all(_int_binding(index, integers, binding, depth) for binding in bindings)
    return False


def as_device(index: ModuleIndex, node: ast.AST) -> list[Edit]:
    """The edits that make a whole number the name of a device: ``"npu:0"``, ``f"npu:{rank}"``."""
    source = index.segment(node)
    if isinstance(node, ast.Constant):
        return [instead_of(index, node, f'"npu:{source}"')]
    if '"' in source or "\\" in source or "\n" in source:
        return put_around(index, node, '"npu:" + str(', ")")
    return put_around(index, node, 'f"npu:{', '}"')


def _int_binding(index: ModuleIndex, integers: Iterable[str], binding: Binding, depth: int) -> bool:
    if binding.kind == "param":
        annotation = binding.annotation
        return isinstance(annotation, ast.Name) and annotation.id == "int"
    if binding.kind != "assign" or binding.value is None:
        return False
    index.expand(binding.node)
    return surely_int(index, integers, binding.value, depth + 1)
