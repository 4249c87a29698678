"""What the reports of a run hold: changes and findings as one table, with the numbers beside it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Optional

import pandas

from migrator.field_types import fits
from migrator.files.errors import SourceError, Unreadable, shown
from migrator.files.source import lines_of
from migrator.findings.finding import SEVERITIES
from migrator.language import N_, _
from migrator.light import Frozen
from migrator.report.csv_tables import (
    CHANGES,
    ENCODING,
    REVIEWED,
    SKIPPED,
    Column,
    as_written,
    cell_in,
    load_tables,
)
from migrator.report.log_file import inputs
from migrator.report.views.said_again import said_again

REPORTS = "migration_report"
SUMMARY = "summary.json"
VERDICT = "verify.json"
# The columns of ``Run.places``, under the names that reports/columns.yaml uses.
PLACE_COLUMNS = (
    *("table", "file", "line", "end_line", "code", "severity", "api", "message", "advice"),
    *("status", "safety", "before", "after", "operation", "certainty"),
)
# A finding is the same where these are: its line may have moved.
SAME = ["file", "code", "api", "message"]
# The columns whose texts are npumigrate's own.
_SPOKEN = ("message", "tips", "advice", "reason")
# Under which other names a table has them.
_OTHER_NAMES = {"message": ("tips",), "api": ("instead", "reached")}
# What a summary has to hold.
_MADE = {"total": int, "unsafe": int}
_SHAPE: dict[Any, Any] = {
    "files": {str: int, "seen": int, "changed": int},
    "changes": {**_MADE, "by_rule": {str: {**_MADE, "name": str}}},
    "findings": {"by_severity": {str: int}, "by_rule": {str: {"total": int}}},
}
Lines = Callable[[str], Optional[Sequence[str]]]


class Run(Frozen):
    """One migration, analysis or lint run.

    ``kind`` is ``migrate``, ``analyze`` or ``lint``. ``places`` has a row for each change and each finding,
    ``skipped`` one for each file that was left out; ``summary`` is what ``summary.json`` holds. ``lines``
    gives the lines of a file as it is after the changes and ``original`` before them, None if not known.
    ``verdict`` is what ``npumigrate verify`` noted last, None where the result was not run.
    """

    kind: str
    name: str
    places: pandas.DataFrame
    skipped: pandas.DataFrame
    summary: dict[str, Any]
    lines: Lines = lambda _: None
    original: Lines = lambda _: None
    verdict: Optional[dict[str, Any]] = None
    folder: Path = Path()
    tables: dict[str, pandas.DataFrame] = field(default_factory=dict)
    reviewed: frozenset[str] = frozenset()

    @property
    def changes(self) -> pandas.DataFrame:
        """The rows of changes that were made."""
        return self.places[self.places["table"] == CHANGES]

    @property
    def findings(self) -> pandas.DataFrame:
        """The rows of what is left to a person."""
        return self.places[self.places["table"] != CHANGES]

    def marks(self) -> list[str]:
        """A name for each row of ``places`` that it has in later runs as well; equal rows are counted."""
        if "mark" in self.places:
            return [*self.places["mark"]]
        keys = [*SAME, "table"]
        numbered = self.places[keys].assign(number=self.places.groupby(keys).cumcount())
        rows = ("\n".join(map(str, row)) for row in numbered.itertuples(index=False))
        return [hashlib.sha256(row.encode("utf-8", "replace")).hexdigest()[:12] for row in rows]

    def said_again(self) -> Run:
        """The run with its texts in the language of this one, also where it was made in English."""

        def translated(rows: pandas.DataFrame) -> pandas.DataFrame:
            return rows.assign(**{name: rows[name].map(said_again) for name in _SPOKEN if name in rows})

        places = translated(self.places.assign(mark=self.marks()))
        tables = {name: translated(rows) for name, rows in self.tables.items()}
        return replace(self, places=places, skipped=translated(self.skipped), tables=tables)


def read_run(given: Path) -> Run:
    """The run whose tables are in a folder: that of a result, an analysis, or of reports.

    Raises SourceError where they cannot be read.
    """
    folder = next((each for each in (given / REPORTS, given) if (each / SUMMARY).is_file()), None)
    if folder is None:
        said = N_("{given} has no {reports}/{summary}: name a result of migrate or analyze")
        said = said if given.exists() else N_("{given}: no such file or folder")
        raise SourceError(said, given=shown(given), reports=REPORTS, summary=SUMMARY)
    try:
        summary = json.loads((folder / SUMMARY).read_text(encoding="utf-8"))
        str(summary).encode()  # half a character, which no page can hold
        if not fits(summary, _SHAPE):
            raise TypeError(SUMMARY)
        name = str(summary["options"]["input"])
        kind = "migrate" if folder.name == REPORTS else "analyze"
        tables = {table: _read(folder / table) for table in load_tables() if (folder / table).is_file()}
        places = _places(tables)
        reviewed = _reviewed(folder / REVIEWED)
    except (OSError, ValueError, KeyError, TypeError, OverflowError) as error:
        why, first = N_("the reports in {folder} cannot be read: {error}"), str(error).partition("\n")[0]
        text = shown(first or type(error).__name__)
        raise SourceError(_(why, folder=shown(folder), error=text)) from None
    skipped = tables.get(SKIPPED, pandas.DataFrame(columns=["file", "reason", "severity"]))
    source = next((path for path in inputs(folder) if path.exists()), None)
    lines, original = map(lines_below, (folder.parent, source) if kind == "migrate" else (source, None))
    verdict = None
    with suppress(OSError, ValueError):
        found = json.loads((folder / VERDICT).read_text(encoding="utf-8"))
        verdict = found if isinstance(found, dict) and "verdict" in found else None
    return Run(kind, name, places, skipped, summary, lines, original, verdict, folder, tables, reviewed)


def _reviewed(file: Path) -> frozenset[str]:
    """The marks of what a person has reviewed. Raises OSError, ValueError or TypeError for other content."""
    content = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {"reviewed": []}
    if not isinstance(content, dict) or not isinstance(content.get("reviewed"), list):
        raise TypeError(file.name)
    return frozenset(map(str, content["reviewed"]))


def _places(tables: dict[str, pandas.DataFrame]) -> pandas.DataFrame:
    """The rows of all changes and findings. Raises ValueError or OverflowError for a line that is none."""
    # The rows of the tables of a library's functions, and of what a run showed, stand in the tables alone.
    listed = [pandas.DataFrame(columns=list(PLACE_COLUMNS))]
    for table, rows in tables.items():
        if table != SKIPPED and load_tables()[table].runs not in (("third_party",), ("insight",)):
            found = rows.assign(table=table)
            for column in PLACE_COLUMNS:
                if column not in found:
                    known = next((other for other in _OTHER_NAMES.get(column, ()) if other in found), None)
                    found[column] = found[known] if known else ""
            listed.append(found[list(PLACE_COLUMNS)])
    return pandas.concat(listed, ignore_index=True).astype({"line": int, "end_line": int})


def _read(file: Path) -> pandas.DataFrame:
    """A table under the names of its values; with those that an older version did not write."""
    columns: tuple[Column, ...] = load_tables()[file.name].columns
    rows = pandas.read_csv(file, dtype=str, keep_default_na=False, encoding=ENCODING, lineterminator="\n")
    for column in columns:
        if column.name not in rows:
            rows[column.name] = "warning" if column.value == "severity" else ""
        else:
            rows[column.name] = [as_written(column.value, cell) for cell in rows[column.name]]
    rows = rows[[column.name for column in columns]].set_axis([column.value for column in columns], axis=1)
    if "severity" in rows and not rows["severity"].isin(SEVERITIES).all():
        raise ValueError(f"{file.name}: Severity")
    return rows


def lines_below(root: Optional[Path]) -> Lines:
    """A function that gives the lines of a file, or of a notebook's cell, below a folder; or of a file."""
    if root is None:
        return lambda _: None
    real = root.resolve()

    @lru_cache(maxsize=1)  # a notebook's cells come one after the other
    def read(name: str) -> Any:
        from migrator.files.document import document

        path = (real / name if real.is_dir() else real).resolve()
        if path != real and real not in path.parents:  # a table says so, and it may be anybody's
            return None
        try:
            return document(path.read_bytes(), name)
        except (OSError, Unreadable, ValueError):
            return None

    def lines(name: str) -> Optional[Sequence[str]]:
        file, cell = cell_in(name)
        found = read(file if cell is not None else name)
        if cell is None or found is None:
            # Behind the last newline there is no line.
            return None if found is None else lines_of(found.text.removesuffix("\n"))
        cells = found.notebook.cells if found.notebook else ()
        return next((each.source.split("\n") for each in cells if each.number == cell), None)

    return lines
