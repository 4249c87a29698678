"""The CSV reports and their columns, which one a finding goes to, and what stands in its row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Optional

from migrator.data_folders import reports_yaml
from migrator.findings.finding import Finding

CHANGES = "change_list.csv"
UNSUPPORTED = "unsupported_api.csv"
UNKNOWN = "unknown_api.csv"
REVIEW = "manual_review.csv"
SKIPPED = "skipped_files.csv"

_UNSUPPORTED = {"absent", "unsupported", "fallback", "partial"}


@dataclass(frozen=True)
class Column:
    """One column: its heading, the name of the value below it, and what that is."""

    name: str
    value: str
    about: str


@dataclass(frozen=True)
class Table:
    """One CSV report: its file name, what a row is, and its columns from left to right.

    ``runs`` are the commands and analysis modes that write it. ``codes`` are beginnings of rule
    codes: where there are some, the table lists what these rules find and do not change.
    """

    name: str
    row: str
    columns: tuple[Column, ...]
    runs: tuple[str, ...]
    codes: tuple[str, ...] = ()


@cache
def tables_of(runs: tuple[str, ...]) -> dict[str, Table]:
    """The CSV reports that these commands or analysis modes write."""
    return {name: table for name, table in load_tables().items() if set(runs).intersection(table.runs)}


@cache
def load_tables() -> dict[str, Table]:
    """Every CSV report by its file name."""
    return {
        name: Table(
            name,
            entry["row"],
            tuple(Column(**each) for each in entry["columns"]),
            tuple(entry["runs"]),
            tuple(entry.get("codes", ())),
        )
        for name, entry in reports_yaml("columns.yaml").items()
    }


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


def cell_in(file: str) -> tuple[str, Optional[int]]:
    """The file and the cell that a name of ``file_of`` has."""
    name, _, cell = file.rpartition(":cell ")
    return (name, int(cell)) if name and cell.isdigit() else (file, None)


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
