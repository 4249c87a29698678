"""``import torch_npu`` where it belongs."""

from __future__ import annotations

import ast
from typing import Any

from migrator.files.source import newline_of
from migrator.findings.finding import Edit
from migrator.names.index import ModuleIndex


def indentation(index: ModuleIndex, node: Any) -> str | None:
    """What stands before a statement on its line; None where that is other code."""
    start = index.start(node)
    begin, _ = index.line_span(index.line_of(start), index.line_of(start))
    before = index.data[begin:start].decode("utf-8")
    return before if not before.strip(" \t\f") else None


def statement_separator(index: ModuleIndex, node: ast.stmt) -> str:
    """What stands between two statements that take the place of one."""
    indent = indentation(index, node)
    return "; " if indent is None or ends_in_semicolon(index, node) else newline_of(index.text) + indent


def ends_in_semicolon(index: ModuleIndex, node: Any) -> bool:
    """Whether another statement (or a lone semicolon) follows on a statement's line."""
    end = index.end(node)
    _, stop = index.line_span(index.line_of(max(end - 1, 0)), index.line_of(max(end - 1, 0)))
    return index.data[end:stop].lstrip(b" \t").startswith(b";")


def torch_npu_imports(index: ModuleIndex, needing: list[Any]) -> list[tuple[Any, Edit]]:
    """The edits that put ``import torch_npu`` in force for the nodes that need it.

    Each comes with the statement it follows. Goes behind the first import of
    torch: the one at the top of the module where there is one, otherwise those
    inside the ``try``, ``if`` or function that hold the uses, never one that
    only type checkers run. Empty where it is there already.
    """
    runtime = [node for node in index.imports if not _only_for_types(index, node)]
    present = [node for node in runtime if names_package(node, "torch_npu")]
    if any(_at_top(index, node) or _guarded_at_top(index, node) for node in present):
        return []
    torch = [node for node in runtime if names_package(node, "torch")]
    at_top = [node for node in torch if _at_top(index, node)]
    if at_top:
        return [(at_top[0], insert_import(index, at_top[0]))]
    if torch:
        chosen = _first_of_each_block(index, torch)
        served = [_block(index, node) for node in present]
        chosen = [node for node in chosen if not any(_block(index, node) is block for block in served)]
        chosen = [node for node in chosen if _serves(index, node, needing)]
        if all(any(_serves(index, node, [use]) for node in chosen) for use in needing):
            return [(node, insert_import(index, node)) for node in _not_dominated(index, chosen)]
    if present:
        return []
    place = _last_top_import(index)
    if place is not None:
        return [(place, insert_import(index, place))]
    return _at_module_start(index)


def names_package(node: Any, package: str) -> bool:
    """Whether an import statement imports a package or something of it."""
    if isinstance(node, ast.Import):
        return any(alias.name.split(".")[0] == package for alias in node.names)
    return node.level == 0 and (node.module or "").split(".")[0] == package


def _at_top(index: ModuleIndex, node: Any) -> bool:
    return isinstance(index.parent(node), ast.Module)


def _guarded_at_top(index: ModuleIndex, node: Any) -> bool:
    """Whether an import stands in a ``try`` or an ``if`` of the module: its absence was thought of."""
    parent = index.parent(node)
    guarded = isinstance(parent, (ast.Try, ast.If))
    return guarded and isinstance(index.parent(parent), ast.Module)


def _not_dominated(index: ModuleIndex, nodes: list[Any]) -> list[Any]:
    """The imports that no earlier one of an enclosing block makes superfluous."""
    kept: list[Any] = []
    for node in nodes:
        around = node
        dominated = False
        while not isinstance(around, (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef)):
            block = _block(index, around)
            if block is not None and any(
                other in block and block.index(other) < block.index(around) for other in kept
            ):
                dominated = True
            around = index.parent(around)
        if not dominated:
            kept.append(node)
    return kept


def _only_for_types(index: ModuleIndex, node: Any) -> bool:
    child = node
    while not isinstance(child, ast.Module):
        parent = index.parent(child)
        if isinstance(parent, ast.If) and child in parent.body:
            test = parent.test
            name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")
            if name == "TYPE_CHECKING":
                return True
        child = parent
    return False


def _block(index: ModuleIndex, node: Any) -> Any:
    """The list of statements that holds a statement."""
    for field in ("body", "orelse", "finalbody", "handlers"):
        statements = getattr(index.parent(node), field, None)
        if isinstance(statements, list) and node in statements:
            return statements
    return None


def _first_of_each_block(index: ModuleIndex, nodes: list[Any]) -> list[Any]:
    chosen: list[Any] = []
    for node in nodes:
        if not any(_block(index, node) is _block(index, other) for other in chosen):
            chosen.append(node)
    return chosen


def _serves(index: ModuleIndex, node: Any, needing: list[Any]) -> bool:
    """Whether a use lies in the scope of an import (or in one inside it)."""
    return any(index.scope_of(use).inside(index.scope_of(node)) for use in needing)


def insert_import(index: ModuleIndex, node: Any, statement: str = "import torch_npu") -> Edit:
    """The edit that puts an import behind a statement, on a line of its own where that can be."""
    end = index.end(node)
    indent = indentation(index, node)
    if indent is None or ends_in_semicolon(index, node):
        return Edit(end, end, f"; {statement}")
    line = index.line_of(max(end - 1, 0))
    _, stop = index.line_span(line, line)
    if index.data[end:stop].endswith((b"\n", b"\r")):
        return Edit(stop, stop, f"{indent}{statement}{newline_of(index.text)}")
    return Edit(stop, stop, f"{newline_of(index.text)}{indent}{statement}")


def _last_top_import(index: ModuleIndex) -> Any:
    """The last of the imports that the module starts with."""
    last = None
    for node in index.tree.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            last = node
        elif last is not None and not isinstance(node, ast.Expr):
            break
        elif last is None and not isinstance(node, ast.Expr):
            break
    return last


def _at_module_start(index: ModuleIndex) -> list[tuple[Any, Edit]]:
    """Behind the docstring, before the first statement."""
    body = index.tree.body
    if not body:
        return []
    first = body[0]
    is_docstring = (
        isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    )
    if is_docstring:
        return [(first, insert_import(index, first))]
    decorators = getattr(first, "decorator_list", None)
    start = index.start(decorators[0]) if decorators else index.start(first)
    begin, _ = index.line_span(index.line_of(start), index.line_of(start))
    return [(first, Edit(begin, begin, f"import torch_npu{newline_of(index.text)}"))]
