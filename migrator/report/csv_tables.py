"""The CSV reports: their columns, which one a finding goes to, and writing them while the files come in.

The csv module writes a row at a time: a project's findings are never all in memory, and after Ctrl-C the
reports list what was finished.
"""

from __future__ import annotations

import csv
import io
import logging
import os
import shlex
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import IO, Any, Optional

from migrator import __version__
from migrator.data_folders import reports_yaml
from migrator.field_types import built
from migrator.files.errors import cannot_write, harmless, shown
from migrator.files.patterns import commit_of
from migrator.files.replacing import replace_file
from migrator.findings.finding import Finding, Result
from migrator.language import _
from migrator.light import Frozen
from migrator.report.log_file import log_to

CHANGES = "change_list.csv"
UNSUPPORTED = "unsupported_api.csv"
UNKNOWN = "unknown_api.csv"
REVIEW = "manual_review.csv"
SKIPPED = "skipped_files.csv"
REVIEWED = "reviewed.json"  # a person puts it there: what the page notes as reviewed, by the marks of rows

_BY_STATUS = dict.fromkeys(("absent", "unsupported", "fallback", "partial"), UNSUPPORTED) | {
    "unknown": UNKNOWN
}
# What a spreadsheet takes for the beginning of a formula, and the values that are source text: a decorator is
# none, and programs compare it with the files.
_FORMULA = ("=", "+", "-", "@", "\t")
_SOURCE = ("before", "after")
ENCODING = "utf-8-sig"
_SAID = attrgetter("code", "severity", "api", "message", "advice", "safety")


class Column(Frozen):
    """One column: its heading, the name of the value below it, and what that is."""

    name: str
    value: str
    about: str


class Table(Frozen):
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
        name: built(Table, {"name": name, **entry}) for name, entry in reports_yaml("columns.yaml").items()
    }


def report_of(finding: Finding, runs: tuple[str, ...] = ("migrate",)) -> str:
    """The one CSV file in which a finding is listed, of those that these runs write."""
    tables = load_tables().values()
    own = ((c, table.name) for table in tables for c in table.codes if finding.code.startswith(c))
    # Of the beginnings of a code that have a table of their own the longest one is the last in order.
    _, report = max(own, default=("", _BY_STATUS.get(finding.status, REVIEW)))
    report = CHANGES if finding.fixed else report
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
    verdict = finding.verdict
    return {
        **finding._asdict(),
        "status": finding.status,
        "documents": verdict.documented if verdict else "",
        "kernel": verdict.kernel if verdict else "",
        "file": file_of(file, finding),
        "line": first,
        "end_line": last,
        "operation": fix.operation if fix and fix.made else "",
        "before": fix.before if fix else "",
        "after": fix.after if fix else "",
        "safety": finding.safety,
        "tips": with_advice(finding.message, finding.advice),
        "certainty": finding.certainty or "certain",
    }


def with_advice(message: str, advice: str) -> str:
    """A message and what it leaves to say as two sentences."""
    if not (message and advice) or advice in message:
        return message or advice
    return _("{message}. {advice}", message=message.rstrip(".。"), advice=advice)


def listed(result: Result) -> Iterator[Finding]:
    """The findings of a file in the order of its lines, as all reports list and count them.

    What several findings of a line have in common is listed once: no report has columns.
    """
    met: set[tuple[object, ...]] = set()  # of one line
    line = None
    for each in sorted(result.findings, key=lambda f: (f.cell or 0, f.lines[0], f.column)):
        if line != (line := (each.cell, each.lines[0])):
            met.clear()
        sides = (each.fix.before, each.fix.after, each.fix.made) if each.fix else ()
        said = *each.lines, *_SAID(each), *sides
        if said not in met:
            met.add(said)
            yield each


class CsvTables:
    """The CSV reports of these commands or analysis modes in one folder, as a context manager.

    ``rows`` counts what was written. They are UTF-8 with ``\\n`` at the end of a row, and begin with a byte
    order mark: without one, spreadsheets take them for another encoding.
    """

    def __init__(self, folder: Path, runs: tuple[str, ...] = ("migrate",)) -> None:
        self._runs = runs
        self.rows: Counter[str] = Counter()
        self._tables: dict[str, tuple[IO[str], Any]] = {}
        with ExitStack() as opened:
            for name, table in tables_of(runs).items():
                # A file name that is not UTF-8 comes as surrogates, which are written as \udc80.
                file = opened.enter_context(
                    (folder / name).open("w", encoding=ENCODING, errors="backslashreplace", newline="")
                )
                writer = csv.writer(file, lineterminator="\n")
                writer.writerow([column.name for column in table.columns])
                self._tables[name] = file, writer
            self._stack = opened.pop_all()

    def __enter__(self) -> CsvTables:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def keep(self, runs: tuple[str, ...]) -> None:
        """Remove the tables that only other commands or modes than these have."""
        for name in self._tables.keys() - tables_of(runs).keys():
            self._tables[name][0].close()
            Path(self._tables[name][0].name).unlink()

    def add(self, result: Result) -> None:
        """Write the rows of one file, in the order of its lines."""
        for finding in listed(result):
            self.write(report_of(finding, self._runs), row_of(result.name, finding))
        reason = result.skipped or result.left
        if reason:
            severity = "error" if result.skipped else "info"
            self.write(SKIPPED, {"file": result.name, "reason": reason, "severity": severity})

    def write(self, name: str, row: Mapping[str, Any]) -> None:
        """Write one row: values under the names that ``reports/columns.yaml`` uses."""
        self._tables[name][1].writerow(cells_of(name, row))
        self.rows[name] += 1


def cells_of(name: str, row: Mapping[str, Any]) -> list[str]:
    """A row's cells in a table."""
    return [cell(column.value, str(row[column.value])) for column in load_tables()[name].columns]


def add_rows(folder: Path, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """Put rows behind those of a table that was written before, or into a new one. Raises CannotWrite."""
    text = io.StringIO(newline="")
    writer, path = csv.writer(text, lineterminator="\n"), folder / name
    if not path.exists():
        writer.writerow([column.name for column in load_tables()[name].columns])
    writer.writerows(cells_of(name, row) for row in rows)
    before = path.read_bytes() if path.exists() else "".encode(ENCODING)
    replace_file(path, before + text.getvalue().encode("utf-8", "backslashreplace"))


def cell(value: str, text: str) -> str:
    """The text of a cell: what a terminal or a spreadsheet would take for more than text is marked."""
    # csv before Python 3.13 does not quote a lone \r, and its readers then take it for the end of a row.
    text = harmless(text.replace("\r\n", "\n").replace("\r", "\n"))
    return f"'{text}" if text.startswith(_FORMULA) and value not in _SOURCE else text


def as_written(value: str, text: str) -> str:
    """The text of a cell as it was before ``cell`` marked it."""
    marked = text.startswith("'") and text[1:].startswith(_FORMULA) and value not in _SOURCE
    return text[1:] if marked else text


@contextmanager
def run_reports(
    folder: Path, place: Path, runs: tuple[str, ...], source: Path, torch: str, how: str
) -> Iterator[CsvTables]:
    """The tables of some runs in a folder, with the log beside them; ``how`` is what the log says of the run.

    Raises CannotWrite, which names the folder by its later ``place``.
    """
    logger = logging.getLogger("npumigrate")
    try:
        with log_to(folder), CsvTables(folder, runs) as tables:
            python = ".".join(map(str, sys.version_info[:3]))
            logger.info("npumigrate %s, Python %s, torch %s", __version__, python, torch)
            logger.info("command npumigrate %s", shown(shlex.join(sys.argv[1:])))
            if commit := commit_of(source):
                logger.info("commit %s", commit)
            logger.info("input %s; %s", shown(os.path.abspath(source)), how)
            with suppress(OSError):  # of the result that this one replaces
                shutil.copyfile(place / REVIEWED, folder / REVIEWED, follow_symlinks=False)
            yield tables
    except OSError as error:
        raise cannot_write(error, place) from error
