"""Blockers: findings that surely stop the program. A rule says what stops it; here the place is judged."""

from __future__ import annotations

import ast
from dataclasses import replace

from migrator.findings.finding import Severity
from migrator.matchers.context import Match
from migrator.names.execution import is_tried, surely_runs
from migrator.names.index import ModuleIndex


def judged(index: ModuleIndex, matches: list[Match]) -> list[Match]:
    """The matches, with those blockers made less whose place is not sure to run, or to stop anything."""
    return [
        replace(item, finding=replace(item.finding, severity=_severity(index, item)))
        if item.finding.severity == "blocker"
        else item
        for item in matches
    ]


def _severity(index: ModuleIndex, item: Match) -> Severity:
    if surely_runs(index, item.node):
        return "blocker"
    imported = isinstance(item.node, (ast.Import, ast.ImportFrom))  # what catches its error was looked at
    return "warning" if is_tried(index, item.node) and not imported else "error"
