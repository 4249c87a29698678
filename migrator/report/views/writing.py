"""The reports of a run as files, in the formats that a user asks for (``report.md``, …), and two compared."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas
from rich.console import Console
from rich.text import Text

from migrator.files.errors import SourceError, cannot_write
from migrator.files.replacing import replace_file
from migrator.language import _
from migrator.matchers.packs import Rule
from migrator.report.csv_tables import ENCODING, cell, load_tables
from migrator.report.terminal import COLOURS, WIDEST
from migrator.report.views.model import Texts, counts_of, effort_of, groups_of, readiness, verdict_of
from migrator.report.views.run import SAME, Run, read_run
from migrator.this_copy import install_command
from migrator.wrapping import padded, wrap


def write_formats(
    given: Path, formats: Sequence[str], rules: dict[str, Rule], folder: Path | None
) -> list[Path]:
    """Build the reports of a result again, beside its tables or in ``folder``; gives their files.

    Raises SourceError and CannotWrite.
    """
    found = read_run(given)
    place = folder or found.folder
    written = []
    for name in formats:
        run = found if name in ("csv", "json") else found.said_again()  # programs read the tables' own words
        file = place / {"html": "index.html", "summary": "summary.html"}.get(name, f"report.{name}")
        if name == "html":
            from migrator.report.views.page import write_pages

            write_pages(run, rules, place)
        elif name == "summary":
            from migrator.report.views.page import summary_page

            replace_file(file, summary_page(run, rules).encode("utf-8", "backslashreplace"))
        elif name == "xlsx":
            _write_workbook(run, file)
        elif name == "csv":  # all changes and findings in one table, under the headings of the others
            rows = run.places.copy()
            for column in rows.columns:
                rows[column] = [cell(column, str(value)) for value in rows[column]]
            rows.columns = rows.columns.str.replace("_", " ").str.title()
            text = str(rows.to_csv(index=False, lineterminator="\n"))
            replace_file(file, text.encode(ENCODING, "backslashreplace"))
        elif name == "md":
            replace_file(file, markdown(run, rules).encode("utf-8", "backslashreplace"))
        else:
            effort, files = effort_of(run)
            content: dict[str, Any] = {
                "schema": 1,
                "summary": run.summary,
                "readiness": readiness(counts_of(run))[0],
                "effort": {"minutes": effort.minutes, "places": effort.places},
                "effort_by_file": {name: each.minutes for name, each in files.items() if each.total},
                "places": run.places.to_dict("records"),
                "skipped": run.skipped.to_dict("records"),
                "tables": {name: rows.to_dict("records") for name, rows in run.tables.items()},
            }
            text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
            replace_file(file, text.encode("utf-8", "backslashreplace"))
        written.append(file)
    return written


# -- Markdown --------------------------------------------------------------------------

_ROWS = 12
_PLACES = 3


def markdown(run: Run, rules: Mapping[str, Rule]) -> str:
    """A run on a page, short enough for the comment on a pull request.

    What comes from its files is code or escaped: it cannot be markup.
    """
    texts = Texts()
    counts = counts_of(run)
    percent, _, _ = readiness(counts)
    effort, _ = effort_of(run)
    verdict, _ = verdict_of(run, counts, texts)
    title = texts("title", name=_plain(run.name), kind=texts.about("kinds", run.kind))
    files = run.summary["files"]
    changed = files["changed"] + files.get("other_changed", 0)
    numbers = (
        *(f"{percent} %", changed, counts.safe + counts.unsafe, counts.unsafe),
        *(counts.open["blocker"], counts.open["error"], counts.open["warning"]),
        texts.duration(*effort.minutes.values()),
    )
    lines = [f"## {title}", "", f"**{_plain(verdict)}**", "", f"torch {run.summary.get('torch', '')}", ""]
    lines += _table(texts("md_numbers"), [numbers])
    groups = groups_of(run, rules)
    rows = []
    for group in groups[:_ROWS]:
        places = [place for said in group["said"] for place in said["places"]]
        where = ", ".join(_code(f"{file}:{line}") for file, line in places[:_PLACES])
        where += f", … ({group['count']})" if group["count"] > _PLACES else ""
        severity = texts.about("severities", group["severity"])
        rows.append((severity, group["code"], _cell(group["title"]), where))
    left = [texts("md_more", len(groups) - _ROWS), ""] if len(groups) > _ROWS else []
    lines += [f"### {texts('md_review')}", "", *_table(texts("md_head"), rows), *left] if rows else []
    by_rule = run.summary["changes"]["by_rule"]
    ordered = sorted(by_rule.items(), key=lambda item: (-item[1]["total"], item[0]))
    names = ((code, rules[code].summary if code in rules else each["name"], each) for code, each in ordered)
    made = [(code, _cell(said), each["total"], each["unsafe"] or "") for code, said, each in names]
    left = [texts("md_more", len(made) - _ROWS), ""] if len(made) > _ROWS else []
    head = texts("md_changes_head")
    lines += [f"### {texts('md_changes')}", "", *_table(head, made[:_ROWS]), *left] if made else []
    reviewed, manual = (texts.duration(effort.minutes[kind]) for kind in ("reviewed", "manual"))
    return "\n".join([*lines, texts("md_effort", reviewed=reviewed, manual=manual), ""])


def _table(head: str, rows: Iterable[Iterable[object]]) -> list[str]:
    """A table below its heading, and an empty line."""
    cells = (f"| {' | '.join(map(str, row))} |" for row in rows)
    return [head, "|" + " --- |" * (head.count("|") - 1), *cells, ""]


def _cell(text: str) -> str:
    """A rule's text, whose backquotes are Markdown's own."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def _plain(text: str) -> str:
    return "".join(f"\\{char}" if char in "\\`*_[]<>|#@!~" else char for char in " ".join(text.split()))


def _code(text: str) -> str:
    """A text as code, whatever it holds: with a fence longer than any in it."""
    fence = "`"
    while fence in text:
        fence += "`"
    pad = " " if "`" in text else ""
    return f"{fence}{pad}{' '.join(text.split())}{pad}{fence}".replace("|", "\\|")


# -- a workbook ------------------------------------------------------------------------

_NUMBERS = ("line", "end_line")
_LONGEST = 32_000  # characters of a cell: 32,767 are the most
_WIDEST = 60
# What XML 1.0 has no place for.
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def _write_workbook(run: Run, file: Path) -> None:
    """The tables that have rows as sheets: every cell is text or a number, never a formula.

    Raises SourceError without openpyxl, CannotWrite.
    """
    try:
        import openpyxl
        from openpyxl.cell import WriteOnlyCell
        from openpyxl.styles import Alignment, Font
    except ImportError:
        raise SourceError(_("xlsx needs openpyxl: {command}", command=install_command("xlsx"))) from None
    book = openpyxl.Workbook(write_only=True)
    wrapped, bold = Alignment(wrap_text=True, vertical="top"), Font(bold=True)
    tables = {name: rows for name, rows in run.tables.items() if len(rows)}
    for name, rows in (tables or {"change_list.csv": pandas.DataFrame(columns=["file"])}).items():
        sheet = book.create_sheet(name.removesuffix(".csv")[:31])
        sheet.freeze_panes = "A2"
        headings = [column.name for column in load_tables()[name].columns][: len(rows.columns)]
        for place, (heading, values) in enumerate(zip(headings, rows.columns), 1):
            width = max([len(heading), *rows[values].astype(str).str.len().head(200)]) + 2
            sheet.column_dimensions[openpyxl.utils.get_column_letter(place)].width = min(width, _WIDEST)
        cells = [WriteOnlyCell(sheet, _(heading)) for heading in headings]
        for heading in cells:
            heading.font = bold
        sheet.append(cells)
        for row in rows.itertuples(index=False):
            cells = []
            for column, value in zip(rows.columns, row):
                one = WriteOnlyCell(sheet)
                if column in _NUMBERS and str(value).isdigit():
                    one.value = int(value)
                else:
                    one.value = _CONTROLS.sub("\ufffd", str(value))[:_LONGEST]
                    one.data_type = "s"  # what begins with = is no formula
                    one.quotePrefix = True
                one.alignment = wrapped
                cells.append(one)
            sheet.append(cells)
        sheet.auto_filter.ref = f"A1:{openpyxl.utils.get_column_letter(len(headings))}{len(rows) + 1}"
    try:
        book.save(file)
    except OSError as error:
        raise cannot_write(error, file) from error


def difference(before: Run, after: Run) -> tuple[pandas.DataFrame, pandas.DataFrame, int]:
    """The findings that are new in the second run, those that are gone, and how many stayed.

    Several equal findings of a file are counted.
    """
    sides = []
    for run in (before, after):
        rows = run.findings.sort_values(["file", "line"], kind="stable")
        sides.append(rows.assign(number=rows.groupby(SAME).cumcount()))
    merged = pandas.merge(*sides, on=[*SAME, "number"], how="outer", suffixes=("_before", ""), indicator=True)
    gone = merged[merged["_merge"] == "left_only"]
    gone = gone.assign(**{name: gone[f"{name}_before"] for name in ("line", "severity", "advice")})
    columns = ["file", "line", "severity", "code", "message", "advice"]

    def ordered(rows: pandas.DataFrame) -> pandas.DataFrame:
        return rows[columns].astype({"line": int}).sort_values(["file", "line"], kind="stable")

    new = merged[merged["_merge"] == "right_only"]
    return ordered(new), ordered(gone), int((merged["_merge"] == "both").sum())


def show_difference(
    console: Console, runs: tuple[Run, Run], new: pandas.DataFrame, gone: pandas.DataFrame, same: int
) -> None:
    """Print what is new, then what is gone, and how many findings stayed."""
    texts = Texts()
    width = min(console.width, WIDEST)
    before, after = (readiness(counts_of(run))[0] for run in runs)
    console.print(Text(texts("diff_title", name=runs[1].name), style="bold"), soft_wrap=True)
    console.print(Text(texts("diff_readiness", before=before, after=after)))
    for key, rows, sign in (("diff_new", new, "+"), ("diff_fixed", gone, "-")):
        console.print()
        console.print(Text(texts(key, len(rows)), style="bold"))
        for row in rows.to_dict("records"):
            line = Text(f"{sign} ")
            line.append(padded(_(row["severity"]), 7), style=COLOURS.get(row["severity"], ""))
            line.append(f"  {row['code']}  {row['file']}:{row['line']}")
            console.print(line, soft_wrap=True)
            for part in wrap(row["message"], width - 11):
                console.print(Text(f"{'':11}{part}"), soft_wrap=True)
    console.print()
    console.print(Text(texts("diff_same", same)))
