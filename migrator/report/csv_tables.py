"""The CSV reports, written while the files come in.

The csv module does it a row at a time: a project's findings are never all in
memory, and after Ctrl-C the reports list what was finished.
"""

from __future__ import annotations

import csv
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

from migrator.findings.finding import Result
from migrator.report.columns import tables_of
from migrator.report.rows import SKIPPED, report_of, row_of


class CsvTables:
    """The CSV reports of these commands or analysis modes in one folder, as a context manager.

    They are plain UTF-8 with ``\\n`` at the end of a row. The byte order mark
    that Excel likes would become part of the first heading for other readers.
    """

    def __init__(self, folder: Path, runs: tuple[str, ...] = ("migrate",)) -> None:
        self._runs = runs
        self._stack = ExitStack()
        self._values: dict[str, tuple[str, ...]] = {}
        self._writers: dict[str, Any] = {}
        self._files: dict[str, IO[str]] = {}
        with self._stack:
            for table in tables_of(self._runs).values():
                # A file name that is not UTF-8 comes as surrogates, which are written as \udc80.
                file = self._stack.enter_context(
                    (folder / table.name).open("w", encoding="utf-8", errors="backslashreplace", newline="")
                )
                self._files[table.name] = file
                writer = csv.writer(file, lineterminator="\n")
                writer.writerow([column.name for column in table.columns])
                self._writers[table.name] = writer
                self._values[table.name] = tuple(column.value for column in table.columns)
            self._stack = self._stack.pop_all()

    def __enter__(self) -> CsvTables:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def keep(self, runs: tuple[str, ...]) -> None:
        """Remove the tables that only other commands or modes than these have."""
        for name in self._files.keys() - tables_of(runs).keys():
            self._files[name].close()
            Path(self._files[name].name).unlink()

    def add(self, result: Result) -> None:
        """Write the rows of one file, in the order of its lines."""
        for finding in sorted(result.findings, key=lambda f: (f.cell or 0, f.lines[0], f.column)):
            self.write(report_of(finding, self._runs), row_of(result.name, finding))
        reason = result.skipped or result.left
        if reason:
            self.write(SKIPPED, {"file": result.name, "reason": reason})

    def write(self, table: str, row: dict[str, str]) -> None:
        """Write one row: values under the names that ``reports/columns.yaml`` uses."""
        self._writers[table].writerow([_cell(row[value]) for value in self._values[table]])


def _cell(text: str) -> str:
    # csv before Python 3.13 does not quote a lone \r, and its readers then take it for the end of a row.
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
