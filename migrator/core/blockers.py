"""Blockers: findings that surely stop the program. A rule says what stops it; here the place is judged."""

from __future__ import annotations

from dataclasses import replace

from migrator.matchers.context import Match
from migrator.names.execution import surely_runs
from migrator.names.index import ModuleIndex


def judged(index: ModuleIndex, matches: list[Match]) -> list[Match]:
    """The matches, with those blockers made errors whose place is not sure to run."""
    return [
        replace(item, finding=replace(item.finding, severity="error"))
        if item.finding.severity == "blocker" and not surely_runs(index, item.node)
        else item
        for item in matches
    ]
