"""Which report a finding goes to, and what stands in its row."""

from __future__ import annotations

from functools import cache

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
    report = _own_report(finding)
    return report if report in tables_of(runs) else REVIEW


def _own_report(finding: Finding) -> str:
    if finding.fixed:
        return CHANGES
    own = next((table for code, table in _by_code() if finding.code.startswith(code)), "")
    if own:
        return own
    if finding.status in _UNSUPPORTED:
        return UNSUPPORTED
    return UNKNOWN if finding.status == "unknown" else REVIEW


@cache
def _by_code() -> list[tuple[str, str]]:
    """The beginnings of codes that have a table of their own, the longest first."""
    codes = [(code, table.name) for table in load_tables().values() for code in table.codes]
    return sorted(codes, key=lambda pair: -len(pair[0]))


def file_of(file: str, finding: Finding) -> str:
    """The file of a finding as the reports name it: in a notebook with the cell."""
    return file if finding.cell is None else f"{file}:cell {finding.cell}"


def row_of(file: str, finding: Finding) -> dict[str, str]:
    """The values of a finding under the names that ``reports/columns.yaml`` uses."""
    fix = finding.fix
    first, last = finding.lines
    return {
        "file": file_of(file, finding),
        "line": str(first),
        "end_line": str(last),
        "operation": fix.operation if fix and fix.made else "",
        "message": finding.message,
        "code": finding.code,
        "before": fix.before if fix else "",
        "after": fix.after if fix else "",
        "safety": finding.safety,
        "api": finding.api,
        "tips": _tips(finding),
        "status": finding.status,
        "severity": finding.severity,
        "advice": finding.advice,
        "documents": finding.documents,
        "kernel": finding.kernel,
        "form": finding.form,
        "instead": finding.instead,
        "certainty": finding.certainty or "certain",
    }


def _tips(finding: Finding) -> str:
    if not finding.advice or finding.advice in finding.message:
        return finding.message
    return f"{finding.message.rstrip('.')}. {finding.advice}" if finding.message else finding.advice
