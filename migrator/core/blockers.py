"""Blockers: findings that surely stop the program. A rule says what stops it; here the place is judged."""

from __future__ import annotations

import ast

from migrator.findings.finding import Severity
from migrator.matchers.context import Match
from migrator.names.execution import surely_runs
from migrator.names.guards import is_caught
from migrator.names.index import ModuleIndex

# What a call raises that an NPU does not know, and a program that is not there.
_RAISED = ("AttributeError", "RuntimeError", "NotImplementedError", "OSError", "FileNotFoundError")


def judged(index: ModuleIndex, matches: list[Match]) -> list[Match]:
    """The matches, with those blockers made less whose place is not sure to run, or to stop anything."""
    return [
        item._replace(finding=item.finding._replace(severity=_severity(index, item.node)))
        if item.finding.severity == "blocker"
        else item
        for item in matches
    ]


def _severity(index: ModuleIndex, node: ast.AST) -> Severity:
    if surely_runs(index, node):
        return "blocker"
    # What catches the error of an import, the rules of imports look at.
    imported = isinstance(node, (ast.Import, ast.ImportFrom))
    return "error" if imported or not is_caught(index, node, _RAISED) else "warning"
