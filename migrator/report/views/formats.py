"""Writing the reports of a run in the formats that a user asks for."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from migrator.files.replacing import replace_file
from migrator.report.views.run import Run, read_run

if TYPE_CHECKING:
    from migrator.matchers.packs import Rule

FORMATS = ("html", "md", "xlsx", "csv", "json")
NAMES = {name: f"report.{name}" for name in FORMATS}
NAMES["html"] = "index.html"


def write_formats(
    given: Path, formats: Sequence[str], rules: dict[str, Rule], folder: Path | None
) -> list[Path]:
    """Build the reports of a result again, beside its tables or in ``folder``; gives their files.

    Raises SourceError and CannotWrite.
    """
    run = read_run(given)
    place = folder or run.folder
    written = []
    for name in formats:
        file = place / NAMES[name]
        if name == "html":
            from migrator.report.views.page import write_pages

            write_pages(run, rules, place)
        elif name == "md":
            from migrator.report.views.markdown import markdown

            replace_file(file, markdown(run, rules).encode("utf-8", "backslashreplace"))
        elif name == "xlsx":
            from migrator.report.views.workbook import write_workbook

            write_workbook(run, file)
        elif name == "csv":
            _write_csv(run, file)
        else:
            replace_file(file, json_text(run).encode("utf-8", "backslashreplace"))
        written.append(file)
    return written


def json_text(run: Run) -> str:
    """The summary, the two estimates and every row of the tables as JSON."""
    from migrator.report.views.estimates import counts_of, effort_of, readiness

    effort, files = effort_of(run)
    content: dict[str, Any] = {
        "summary": run.summary,
        "readiness": readiness(counts_of(run))[0],
        "effort": {"minutes": effort.minutes, "places": effort.places},
        "effort_by_file": {name: each.minutes for name, each in files.items() if each.total},
        "places": run.places.to_dict("records"),
        "skipped": run.skipped.to_dict("records"),
        "tables": {name: rows.to_dict("records") for name, rows in run.tables.items()},
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _write_csv(run: Run, file: Path) -> None:
    """All changes and findings in one table, under the headings of the others."""
    from migrator.report.csv_tables import ENCODING, cell

    rows = run.places.copy()
    for column in rows.columns:
        rows[column] = [cell(column, str(value)) for value in rows[column]]
    rows.columns = rows.columns.str.replace("_", " ").str.title()
    text = rows.to_csv(index=False, lineterminator="\n")
    replace_file(file, text.encode(ENCODING, "backslashreplace"))
