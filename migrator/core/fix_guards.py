"""Fixes that are not made although a rule matched, and why."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from migrator.findings.edits import extent
from migrator.findings.finding import Severity
from migrator.language import N_, _
from migrator.matchers.context import FileContext, Match
from migrator.names.index import ModuleIndex
from migrator.names.npu_branches import chooses_for_npus, has_npu_branch, is_flag_for_nvidia, patches_cuda
from migrator.names.ways import guards_cuda_build

if TYPE_CHECKING:
    from migrator.matchers.context import TextContext

_OF_CUDA = ("cuda.", "cudart.", "cupy.", "numba.cuda.", "pycuda.")
_TWIN = N_("the project has a separate file for NPUs")
_QUOTE = re.compile(r"[fFrRuUbB]*(\"\"\"|'''|\"|')")


def guarded(context: FileContext, matches: list[Match], knows_npus: bool) -> list[Match]:
    """The matches, with the fixes taken away where they would do harm.

    ``knows_npus``: the input speaks of NPUs, so it may have cases of its own.
    """
    index, has_twin = context.index, context.name in context.project.twins
    result = []
    for item in matches:
        if item.finding.fix:
            reason = _(_TWIN) if has_twin else _reason(index, item, knows_npus) or _taker(context, item.node)
            if reason:
                item = without_fix(item, reason)
            else:
                item = _with_fitting_quotes(index, item)
        result.append(item)
    return result


def guarded_text(context: TextContext, matches: list[Match]) -> list[Match]:
    """The matches in a file that is no Python, without fixes where there is such a file for NPUs."""
    if context.index.name not in context.project.twins:
        return matches
    return [without_fix(item, _(_TWIN)) if item.finding.fix else item for item in matches]


def without_fix(item: Match, reason: str, severity: Severity = "info") -> Match:
    """The match as a report only."""
    message = _("{message}; left unchanged: {reason}", message=item.finding.message, reason=reason)
    return item._replace(finding=item.finding._replace(fix=None, severity=severity, message=message))


def _reason(index: ModuleIndex, item: Match, knows_npus: bool) -> str:
    if knows_npus and (
        has_npu_branch(index, item.node)
        or patches_cuda(index, item.node)
        or (isinstance(item.node, ast.Call) and chooses_for_npus(index, item.node, *extent(item.edits)))
    ):
        return _("the code already has a branch for NPUs")
    if isinstance(item.node, (ast.Constant, ast.JoinedStr)) and is_flag_for_nvidia(index, item.node):
        return _("the name of the result refers to NVIDIA GPUs")
    if guards_cuda_build(index, item.node):
        return _("it decides whether CUDA sources are compiled")
    return ""


def _taker(context: FileContext, node: ast.AST) -> str:
    """That a value is handed to a library that is CUDA's, which has no use for an NPU's; empty where not."""
    for child, parent in context.index.way_up(node):
        if isinstance(parent, (ast.stmt, ast.Lambda)):
            return ""
        if isinstance(parent, ast.Call) and child is not parent.func:
            name = context.index.qualified_name(parent.func)
            if name.startswith(_OF_CUDA) and not context.project.owns(name, context.name):
                return _("it is passed to {name}, which is for CUDA", name=name)
    return ""


def _with_fitting_quotes(index: ModuleIndex, item: Match) -> Match:
    """The fix with quotes that may stand inside the f-string that holds it.

    Before Python 3.12 a field cannot use the quotes of its f-string.
    """
    fix = item.finding.fix
    if fix is None or not any('"' in edit.text for edit in fix.edits):
        return item
    outer = enclosing_fstring(index, item.node)
    if outer is None:
        return item
    quote = _QUOTE.match(index.segment(outer))
    if quote is None or not quote.group(1).startswith('"'):
        return item
    edits = tuple(edit._replace(text=edit.text.replace('"', "'")) for edit in fix.edits)
    return item._replace(finding=item.finding._replace(fix=fix._replace(edits=edits)))


def enclosing_fstring(index: ModuleIndex, node: ast.AST) -> ast.JoinedStr | None:
    """The outermost f-string around a node, None where there is none."""
    outer = None
    parent = index.parent(node)
    while parent is not None and not isinstance(parent, ast.stmt):
        if isinstance(parent, ast.JoinedStr):
            outer = parent
        parent = index.parent(parent)
    return outer
