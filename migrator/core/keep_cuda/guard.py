"""What cannot be shared stands beside what CUDA has, and the device chooses."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Optional

from migrator.core.keep_cuda import NAME, ON_NPU
from migrator.files.source import newline_of
from migrator.findings.edits import extent, part_with
from migrator.findings.finding import Edit
from migrator.matchers.context import instead_of
from migrator.names.index import ModuleIndex
from migrator.names.tree import parse, root, walk

_MOST_LINES = 4  # what is longer is not written twice
# Where a conditional expression needs no parentheses.
_OPEN = (ast.keyword, ast.Assign, ast.AnnAssign, ast.Return, ast.List, ast.Set, ast.Dict)


def guarded_by_device(index: ModuleIndex, node: ast.AST, edits: Sequence[Edit]) -> Optional[list[Edit]]:
    """The edits that make some others on NPUs only; None where code cannot be written twice there."""
    statement = index.statement_of(node) if hasattr(node, "lineno") else None
    if not isinstance(statement, ast.stmt) or chosen_by_device(index, node, edits):
        return None
    start, end = extent(edits)
    expression = _smallest(index, statement, start, end)
    if expression is not None:
        conditional = _conditional(index, expression, edits)
        if conditional or not isinstance(index.parent(expression), ast.Expr):
            return conditional
    if hasattr(statement, "body") or hasattr(statement, "cases"):
        return None
    return _branches(index, statement, edits, start, end)


def chosen_by_device(index: ModuleIndex, node: ast.AST, edits: Sequence[Edit]) -> bool:
    """Whether the device decides already whether a node runs, or what stands where the edits are."""
    if not hasattr(node, "lineno"):
        return False
    start, end = extent(edits)
    inside = (
        each
        for each in walk(index.statement_of(node))
        if isinstance(each, ast.IfExp) and index.start(each) <= end and start <= index.end(each)
    )
    around = (up for up in index.above(node) if isinstance(up, (ast.If, ast.IfExp)))
    return any(ON_NPU in index.segment(each.test) for each in (*around, *inside))


def _smallest(index: ModuleIndex, statement: ast.stmt, start: int, end: int) -> Optional[ast.expr]:
    """The smallest expression around a place that can be another expression."""
    best: Optional[ast.expr] = None
    for node in walk(statement):
        if not isinstance(node, ast.expr) or not _may_be_conditional(index, node):
            continue
        first, last = index.span(node)
        inside = first < start and end < last if start == end else first <= start and end <= last
        if inside and (best is None or last - first <= index.end(best) - index.start(best)):
            best = node
    return best


def _may_be_conditional(index: ModuleIndex, node: ast.expr) -> bool:
    if isinstance(node, (ast.Starred, ast.Slice, ast.FormattedValue)):
        return False
    if index.call_of(node) and not isinstance(root(node), ast.Name):
        return False  # the method of a value goes with its call
    if not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
        return False
    parent = index.parent(node)
    return not isinstance(parent, ast.JoinedStr) and type(parent).__name__ != "MatchValue"


def _conditional(index: ModuleIndex, node: ast.expr, edits: Sequence[Edit]) -> Optional[list[Edit]]:
    old = index.segment(node)
    if old.count("\n") >= _MOST_LINES:
        return None
    new = part_with(index.data, index.span(node), edits)
    if not isinstance(node, (ast.Constant, ast.JoinedStr)):
        new = new.replace("torch_npu.", f"{NAME}.torch_npu.")
    try:
        parse(f"({new})")
    except SyntaxError:
        return None
    text = f"{new} if {ON_NPU} else {old}"
    parent = index.parent(node)
    is_open = isinstance(parent, _OPEN) or (isinstance(parent, ast.Call) and node in parent.args)
    is_open = is_open or (isinstance(parent, ast.Subscript) and node is parent.slice)
    return [instead_of(index, node, text if is_open else f"({text})")]


def _branches(
    index: ModuleIndex, statement: ast.stmt, edits: Sequence[Edit], start: int, end: int
) -> Optional[list[Edit]]:
    first, last = index.span(statement)
    before, behind = (part.decode("utf-8") for part in index.lines.beside((first, last)))
    if before.strip() or behind.split("#")[0].strip():
        return None  # other code stands on its lines
    old, newline = index.segment(statement), newline_of(index.text)
    if old.count("\n") >= _MOST_LINES:
        return None
    if start >= first and end <= last:
        new = part_with(index.data, index.span(statement), edits)
    elif len(edits) == 1 and start <= first and last <= end:
        new = edits[0].text
    else:
        return None
    if not isinstance(statement, (ast.Import, ast.ImportFrom)):
        new = new.replace("torch_npu.", f"{NAME}.torch_npu.")
    inner = f"{newline}{before}    "
    old = old.replace(newline + before, inner)
    new = new.strip().replace(newline + before, inner)
    if new in ("", "pass"):
        return [Edit(first, last, f"if not {ON_NPU}:{inner}{old}")]
    return [Edit(first, last, f"if {ON_NPU}:{inner}{new}{newline}{before}else:{inner}{old}")]
