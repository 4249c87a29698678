"""Which report a finding goes to, and what stands in its row."""

from __future__ import annotations

from typing import Any

from migrator.findings.finding import Finding
from migrator.report.columns import load_tables, tables_of

CHANGES = "change_list.csv"
UNSUPPORTED = "unsupported_api.csv"
UNKNOWN = "unknown_api.csv"
REVIEW = "manual_review.csv"
SKIPPED = "skipped_files.csv"

_UNSUPPORTED = {"absent", "unsupported", "fallback", "partial"}


def report_of(finding: Finding, runs: tuple[str, ...] = ("migrate",)) -> str:
    """The one CSV file in which a finding is listed, of those that these runs write."""
    tables = load_tables().values()
    # Of the beginnings of a code that have a table of their own the longest one is the last in order.
    own = max(
        ((c, table.name) for table in tables for c in table.codes if finding.code.startswith(c)), default=None
    )
    if finding.fixed:
        report = CHANGES
    elif own:
        report = own[1]
    elif finding.status in _UNSUPPORTED:
        report = UNSUPPORTED
    else:
        report = UNKNOWN if finding.status == "unknown" else REVIEW
    return report if report in tables_of(runs) else REVIEW


def file_of(file: str, finding: Finding) -> str:
    """The file of a finding as the reports name it: in a notebook with the cell."""
    return file if finding.cell is None else f"{file}:cell {finding.cell}"


def row_of(file: str, finding: Finding) -> dict[str, Any]:
    """The values of a finding under the names that ``reports/columns.yaml`` uses: its own, and some more."""
    fix = finding.fix
    first, last = finding.lines
    return {
        **finding._asdict(),
        "file": file_of(file, finding),
        "line": first,
        "end_line": last,
        "operation": fix.operation if fix and fix.made else "",
        "before": fix.before if fix else "",
        "after": fix.after if fix else "",
        "safety": finding.safety,
        "tips": _tips(finding),
        "certainty": finding.certainty or "certain",
    }


def _tips(finding: Finding) -> str:
    if not finding.advice or finding.advice in finding.message:
        return finding.message
    return f"{finding.message.rstrip('.')}. {finding.advice}" if finding.message else finding.advice
