"""Questions for CUDA that keep an NPU from CUDA operators stay as they are: it takes the other way."""

from __future__ import annotations

import ast

from migrator.core.fix_guards import without_fix
from migrator.findings.finding import Severity
from migrator.language import _
from migrator.matchers.context import Match
from migrator.names.guards import IMPORT_ERRORS, catching
from migrator.names.index import ModuleIndex
from migrator.names.ways import QUESTIONS, choices, is_inside, keeps_from_operators, operator_uses

_OPERATOR_USE = "NPU653"
_IMPORTS = (ast.Import, ast.ImportFrom)


def kept(index: ModuleIndex, matches: list[Match]) -> list[Match]:
    """The matches, without the fixes of such questions; uses of operators behind them are less grave."""
    asking = _asking(index, matches)
    if not asking:
        return matches
    used = [item for item in matches if item.finding.code == _OPERATOR_USE]
    avoided = {id(item) for item in used if any(_is_skipped(index, node, item) for node in asking)}
    all_avoided = all(id(item) in avoided for item in used if not isinstance(item.node, _IMPORTS))
    result = []
    for item in matches:
        if item.node in asking and item.finding.fix:
            item = without_fix(item, _("it selects CUDA operators, and NPUs take the other branch"))
        elif id(item) in avoided:
            item = _less(item, "info")
        elif all_avoided and item.finding.code == _OPERATOR_USE and catching(index, item.node, IMPORT_ERRORS):
            item = _less(item, "warning")
        result.append(item)
    return result


def _less(item: Match, severity: Severity) -> Match:
    message = _("{message}; NPUs take the other branch", message=item.finding.message)
    return item._replace(finding=item.finding._replace(severity=severity, message=message))


def _asking(index: ModuleIndex, matches: list[Match]) -> set[ast.AST]:
    """The questions for CUDA that keep an NPU from CUDA operators, as long as they stay as they are."""
    used = [item.node for item in matches if item.finding.code == _OPERATOR_USE]
    operators = operator_uses(index, used) if used else set()
    fixed = [item.node for item in matches if item.finding.fix]
    return {
        node
        for node in (fixed if operators else ())
        if keeps_from_operators(index, node, operators) and not _is_for_more(index, node, fixed)
    }


def _is_for_more(index: ModuleIndex, node: ast.AST, fixed: list[ast.AST]) -> bool:
    """Whether a question for any device is also what chooses one: its way has other places that change."""
    if getattr(node, "attr", "") not in QUESTIONS:
        return False
    skipped = [each for choice in choices(index, node) for each in choice.skipped]
    return any(is_inside(index, other, skipped) for other in fixed)


def _is_skipped(index: ModuleIndex, node: ast.AST, item: Match) -> bool:
    return any(is_inside(index, item.node, choice.skipped) for choice in choices(index, node))
