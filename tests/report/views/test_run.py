"""The reports that are built from the tables: as a workbook, as Markdown, as JSON, and two compared."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import openpyxl
import pytest

from migrator.cli.main import run
from migrator.findings.finding import SEVERITIES
from migrator.report.csv_tables import CsvTables, load_tables
from migrator.report.views.hunks import Place, hunks_of
from migrator.report.views.model import Counts, Texts, effort_of, readiness, verdict_of
from migrator.report.views.run import read_run
from migrator.report.views.writing import markdown
from tests.report.views.conftest import HOSTILE_NAME, migrated


@pytest.fixture
def copied(result: Path, tmp_path: Path) -> Path:
    """The result at a place where it may be changed."""
    return Path(shutil.copytree(result, tmp_path / "project_msft"))


def test_all_formats_are_built_from_the_tables(copied, capsys) -> None:
    (copied / "migration_report/index.html").unlink()
    assert run(["report", str(copied), "--format", "html,md,xlsx,csv,json"]) == 0
    written = [Path(line).name for line in capsys.readouterr().out.splitlines()]
    assert written == ["index.html", "report.md", "report.xlsx", "report.csv", "report.json"]
    content = json.loads((copied / "migration_report/report.json").read_text(encoding="utf-8"))
    changes = content["tables"]["change_list.csv"]
    assert {row["file"] for row in changes} == {HOSTILE_NAME, "models/net.py", "train.py"}
    assert sum(place["table"] == "change_list.csv" for place in content["places"]) == len(changes)


def test_what_a_run_showed_is_on_the_page_and_no_finding(copied) -> None:
    before = read_run(copied).places
    hostile = 'a number is read <script>alert("x")</script>'
    with CsvTables(copied / "migration_report", ("insight",)) as tables:
        for severity, line in (("warning", 3), ("info", "")):
            values = dict.fromkeys((column.value for column in load_tables()["npu_insight.csv"].columns), "")
            row = {**values, "severity": severity, "file": "train.py", "line": line, "message": hostile}
            tables.write("npu_insight.csv", row)
    assert run(["report", str(copied), "--format", "html,md,xlsx,csv,json", "-q"]) == 0
    page = (copied / "migration_report/index.html").read_text(encoding="utf-8")
    assert page.count("a number is read &lt;script&gt;") == 2
    assert "train.py:3" in page[page.index('id="insight"') :]
    assert read_run(copied).places.equals(before)


def test_the_report_is_the_one_that_the_migration_built(copied) -> None:
    built = (copied / "migration_report/index.html").read_text(encoding="utf-8")
    assert run(["report", str(copied), "-q"]) == 0
    again = (copied / "migration_report/index.html").read_text(encoding="utf-8")
    assert again.replace(str(copied), "") == built.replace(str(copied), "")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["nowhere"], "nowhere: no such file or folder"),
        (["."], "has no migration_report/summary.json"),
        ([".", "--format", "pdf"], "--format: choose from html, summary, md, xlsx, csv, json, not 'pdf'"),
        (["diff", "."], "diff needs two results"),
        (["a", "b"], "give exactly one result"),
    ],
)
def test_what_cannot_be_reported_is_told_in_a_line(arguments, line, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["report", *arguments]) == 2
    captured = capsys.readouterr()
    assert line in captured.err
    assert captured.err.count("\n") == 1


def test_a_summary_of_something_else_is_told(copied, capsys) -> None:
    (copied / "migration_report/summary.json").write_text("[1]")
    assert run(["report", str(copied)]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_no_cell_of_the_workbook_is_a_formula(copied) -> None:
    table = copied / "migration_report/change_list.csv"
    text = table.read_text(encoding="utf-8-sig")
    text += "=cmd.py,1,1,MODIFY,=1+1,NPU101,=HYPERLINK(1),+1,safe,error\n"
    text += "'@a.py,1,1,MODIFY,-2,NPU101,@x,@y,safe,error\n"
    table.write_text(text, encoding="utf-8-sig")
    assert run(["report", str(copied), "--format", "xlsx", "-q"]) == 0
    sheet = openpyxl.load_workbook(copied / "migration_report/report.xlsx")["change_list"]
    rows = list(sheet.iter_rows())
    assert [cell.value for cell in rows[-2]][6:8] == ["=HYPERLINK(1)", "+1"]
    assert rows[-1][0].value == "@a.py"
    assert {cell.data_type for row in rows for cell in row} <= {"s", "n", "inlineStr"}
    assert {type(row[1].value) for row in rows[1:]} == {int}


def test_markdown_fits_a_comment_and_holds_no_markup_of_the_project(copied) -> None:
    text = markdown(read_run(copied), {})
    assert text.startswith("## project: Migration report\n\n**Not ready: 2 blockers")
    assert f"`{HOSTILE_NAME}:4`" in text
    assert len(text) < 5000


def test_a_difference_names_what_is_gone_and_what_is_new(tmp_path, capsys) -> None:
    before = migrated(tmp_path / "a")
    after = Path(shutil.copytree(before, tmp_path / "b"))
    table = after / "migration_report/unsupported_api.csv"
    rows = table.read_text(encoding="utf-8-sig").splitlines()
    gone = next(row for row in rows if "temperature" in row)
    rows[rows.index(gone)] = "moved.py,3,3,torch.cuda.new,is new,NPU101,absent,,,certain,error"
    table.write_text("\n".join(rows) + "\n", encoding="utf-8-sig")
    assert run(["report", "diff", str(before), str(after)]) == 1
    shown = capsys.readouterr().out
    assert "1 new finding\n+ error    NPU101  moved.py:3\n           is new\n" in shown
    assert "1 finding resolved\n- " in shown
    assert run(["report", "diff", str(before), str(after), "--format", "html"]) == 1
    page = (after / "migration_report/diff.html").read_text(encoding="utf-8")
    assert "<h2>1 new finding</h2>" in page
    assert run(["report", "diff", str(before), str(before)]) == 0
    assert "0 new findings" in capsys.readouterr().out


def counts(safe: int, unsafe: int, levels: dict[str, int], skipped: int) -> Counts:
    return Counts(safe, unsafe, {**dict.fromkeys(SEVERITIES, 0), **levels}, skipped)


@pytest.mark.parametrize(
    ("kind", "safe", "unsafe", "levels", "skipped", "said"),
    [
        ("migrate", 3, 1, {"blocker": 1, "error": 2}, 0, "Not ready: 1 blocker will stop"),
        ("migrate", 3, 1, {"error": 2}, 0, "Starts, but 2 code paths will fail"),
        ("migrate", 3, 0, {}, 1, "Not complete: 1 file"),
        ("migrate", 3, 1, {"warning": 1}, 0, "Ready for review: no blockers found; review 2 locations"),
        ("analyze", 0, 0, {"warning": 1}, 0, "No blockers found; review 1 location"),
        ("migrate", 3, 0, {"info": 4}, 0, "No blockers found; 4 notes"),
        ("migrate", 3, 0, {}, 0, "Ready to run"),
        ("migrate", 0, 0, {}, 0, "Nothing to migrate"),
        ("lint", 0, 0, {}, 0, "No findings."),
    ],
)
def test_the_verdict_is_by_what_is_worst(result, kind, safe, unsafe, levels, skipped, said) -> None:
    numbers = counts(safe, unsafe, levels, skipped)
    run_of = replace(read_run(result), kind=kind, verdict=None)
    assert verdict_of(run_of, numbers, Texts())[0].startswith(said)
    passed = replace(run_of, verdict={"verdict": "passed"})
    assert verdict_of(passed, numbers, Texts())[0].endswith("Ran to its end on emulated NPUs.")


@pytest.mark.parametrize(
    ("safe", "unsafe", "levels", "skipped", "percent"),
    [
        (0, 0, {}, 0, 100),
        (10, 0, {}, 0, 100),
        (0, 4, {}, 0, 91),
        (999, 1, {}, 0, 99),
        (20, 0, {"blocker": 1}, 0, 50),
        (6, 0, {"warning": 4, "info": 9}, 0, 86),
        (0, 0, {"warning": 1}, 0, 95),
        (0, 0, {"error": 4}, 0, 50),
        (0, 0, {"blocker": 1}, 0, 0),
        (0, 0, {}, 1, 80),
    ],
)
def test_readiness_is_the_formula_that_the_page_states(safe, unsafe, levels, skipped, percent) -> None:
    assert readiness(counts(safe, unsafe, levels, skipped))[0] == percent


def test_an_estimate_counts_the_first_place_of_an_api_more(copied) -> None:
    whole, files = effort_of(read_run(copied))
    assert whole.places["automatic"] > 5
    assert whole.minutes["automatic"] == 0
    assert whole.total == pytest.approx(sum(each.total for each in files.values()))
    assert whole.minutes["manual"] > 0


def change(line: int, before: str, after: str, operation: str = "MODIFY") -> Place:
    rows = before.count("\n")
    return Place(True, line, line + rows, "NPU1", "error", "", "m", "", "safe", before, after, operation)


BEFORE = ["a", "  x.cuda()", "b", "c", "d", "e", "f", "g", "h", "i"]
AFTER = ["a", "import n", "  x.npu()", "b", "c", "d", "e", "f", "g", "H", "i"]
CHANGES = [change(1, "", "import n", "INSERT"), change(2, "x.cuda()", "x.npu()"), change(9, "h", "H")]


@pytest.mark.parametrize("original", [BEFORE, None])
def test_hunks_are_the_same_with_the_original_and_without(original) -> None:
    first, second = hunks_of(CHANGES, AFTER, original)
    pairs = [(line.old, line.new, line.before, line.after) for line in first.lines]
    assert pairs[0] == (1, 1, "a", "a")
    assert (2, 3, "  x.cuda()", "  x.npu()") in pairs or (None, 3, None, "  x.npu()") in pairs
    assert pairs[-1] == (4, 5, "c", "c")
    assert [(line.old, line.new, line.before, line.after) for line in second.lines] == [
        (7, 8, "f", "f"),
        (8, 9, "g", "g"),
        (9, 10, "h", "H"),
        (10, 11, "i", "i"),
    ]
    assert [len(hunk.places) for hunk in (first, second)] == [2, 1]


def test_a_file_that_was_edited_since_shows_the_changes_alone() -> None:
    hunks = hunks_of(CHANGES, ["something else"])
    assert [[(line.before, line.after) for line in hunk.lines] for hunk in hunks] == [
        [(None, "import n")],
        [("x.cuda()", "x.npu()")],
        [("h", "H")],
    ]


def test_a_table_cannot_show_files_outside_of_the_result(copied) -> None:
    (copied.parent / "secret.txt").write_text("secret")
    assert read_run(copied).lines("../secret.txt") is None
    assert read_run(copied).lines("train.py")
