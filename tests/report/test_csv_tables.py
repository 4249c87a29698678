"""The tables, the numbers of the summary and the log, read again as other programs read them."""

from __future__ import annotations

import csv
import json
import logging
import re
from collections import Counter
from pathlib import Path

import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrator import __version__
from migrator.api_support.verdict_type import Verdict
from migrator.files.errors import harmless
from migrator.findings.finding import Finding, Fix, Result
from migrator.report.csv_tables import CsvTables, load_tables, report_of, row_of
from migrator.report.log_file import log_to
from migrator.report.tally import Tally, summary_text

DOCS = Path(__file__).parents[2] / "docs" / "reports.md"


def change(line: int = 1, column: int = 1, **values: str) -> Finding:
    message = values.pop("message", "changed")
    fix = Fix((), "safe", made=True, **values)
    return Finding("NPU101", message, line, column, line, column + 1, api="torch.cuda", fix=fix)


def written(folder: Path, *results: Result) -> list[list[str]]:
    with CsvTables(folder) as tables:
        for result in results:
            tables.add(result)
    with (folder / "change_list.csv").open(encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file))


def test_headings_are_those_that_users_of_the_vendors_tool_know(tmp_path) -> None:
    written(tmp_path)
    headings = {path.name: path.read_text("utf-8-sig").rstrip("\n") for path in tmp_path.iterdir()}
    api = "File,Start Line,End Line,OP,Tips,Rule,Status,Documents,Kernel,Certainty,Severity"
    place = "File,Start Line,End Line"
    assert headings == {
        "change_list.csv": f"{place},Operation Type,Message,Rule,Before,After,Safety,Severity",
        "unsupported_api.csv": api,
        "unknown_api.csv": api,
        "cuda_op_list.csv": f"{place},OP,Tips,Rule,Status,Severity",
        "manual_review.csv": f"{place},Rule,Severity,Message,Advice",
        "skipped_files.csv": "File,Reason,Severity",
    }


def test_rows_are_in_the_order_of_lines(tmp_path) -> None:
    result = Result("a.py", findings=(change(10), change(2, 9, after="b"), change(2, 1, after="a")))
    rows = written(tmp_path, result)[1:]
    assert [(row[1], row[7]) for row in rows] == [("2", "a"), ("2", "b"), ("10", "")]


def test_what_a_spreadsheet_takes_for_a_formula_is_marked_but_not_in_source_text(tmp_path) -> None:
    starts = ("=1+1", "+1", "-1", "@sum(A1)", "\t=1")
    results = [
        Result(f"{text}.py", findings=(change(before=text, after=text, message=text),)) for text in starts
    ]
    rows = written(tmp_path, *results)[1:]
    assert [row[0] for row in rows] == [f"'{text}.py" for text in starts]
    assert [row[4] for row in rows] == [f"'{text}" for text in starts]
    assert [row[6:8] for row in rows] == [[text, text] for text in starts]


def test_no_cell_holds_what_controls_a_terminal(tmp_path) -> None:
    text = 'x = "\x1b]0;title\x07\x9b2J\u202e\x00"\t# \x0c\ny'
    rows = written(tmp_path, Result("a\x1b.py", findings=(change(before=text, after=text, message=text),)))
    shown = 'x = "\\x1b]0;title\\x07\\x9b2J\\u202e\\x00"\t# \x0c\ny'
    assert [rows[1][0], rows[1][4], *rows[1][6:8]] == ["a\\x1b.py", shown, shown, shown]


def test_quoting(tmp_path) -> None:
    before = 'x = "a,b"\r\ny = 1\rz'
    rows = written(tmp_path, Result("a, b.py", findings=(change(before=before, after="训练"),)))
    assert rows[1][0] == "a, b.py"
    assert rows[1][6] == 'x = "a,b"\ny = 1\nz'
    assert rows[1][7] == "训练"
    frame = pandas.read_csv(tmp_path / "change_list.csv")
    assert frame["Before"][0] == rows[1][6]


def test_one_newline_after_a_row_and_a_byte_order_mark(tmp_path) -> None:
    written(tmp_path, Result("a.py", findings=(change(),)))
    data = (tmp_path / "change_list.csv").read_bytes()
    assert data.startswith(b"\xef\xbb\xbfFile,")
    assert data.count(b"\n") == 2
    assert b"\r" not in data


@given(before=st.text(st.characters(codec="utf-8", exclude_characters="\0")), name=st.text(min_size=1))
def test_any_text_comes_back(tmp_path_factory, before, name) -> None:
    folder = tmp_path_factory.mktemp("reports")
    rows = written(folder, Result("a.py", findings=(change(before=before),)), Result("b.py", skipped=name))
    assert len(rows) == 2
    assert rows[1][6] == harmless(before.replace("\r\n", "\n").replace("\r", "\n"))


def test_columns_name_values_that_exist() -> None:
    known = set(row_of("a.py", change())) | {"reason"}
    for table in load_tables().values():
        # Their rows are not findings; tests/analyze/third_party and tests/insight write them.
        if table.runs not in (("third_party",), ("insight",)):
            assert {column.value for column in table.columns} <= known


def test_the_documentation_lists_every_column() -> None:
    sections = dict(re.findall(r"^## (\S+)\n(.*?)(?=^## |\Z)", DOCS.read_text(encoding="utf-8"), re.M | re.S))
    for table in load_tables().values():
        documented = re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", sections[table.name], re.M)
        assert documented[0] == ("column", "meaning")
        assert documented[2:] == [(column.name, column.about) for column in table.columns]
        assert f"A row is {table.row}." in sections[table.name]


def test_what_a_line_has_twice_is_one_row(tmp_path) -> None:
    twice = Result("a.py", (change(3, 1), change(3, 9), change(3, 9, after="other"), change(4, 1)))
    rows = written(tmp_path, twice)[1:]
    assert [(row[1], row[7]) for row in rows] == [("3", ""), ("3", "other"), ("4", "")]
    tally = Tally({})
    tally.add(twice, changed=True)
    assert tally.changes() == 3


MADE = Fix((), "safe", made=True)


def finding(code: str = "NPU101", message: str = "m", **values: object) -> Finding:
    return Finding(code, message, 3, 1, 4, 2, api="torch.x", **values)


@pytest.mark.parametrize(
    ("values", "report"),
    [
        ({"fix": MADE}, "change_list.csv"),
        ({"fix": MADE, "verdict": Verdict("x", "partial")}, "change_list.csv"),
        ({"fix": MADE, "code": "NPU651"}, "change_list.csv"),
        ({"verdict": Verdict("x", "absent")}, "unsupported_api.csv"),
        ({"verdict": Verdict("x", "unsupported")}, "unsupported_api.csv"),
        ({"verdict": Verdict("x", "fallback")}, "unsupported_api.csv"),
        ({"verdict": Verdict("x", "partial")}, "unsupported_api.csv"),
        ({"verdict": Verdict("x", "unknown")}, "unknown_api.csv"),
        ({"code": "NPU651"}, "cuda_op_list.csv"),
        ({"code": "NPU651", "verdict": Verdict("x", "unsupported")}, "cuda_op_list.csv"),
        ({"code": "NPU601"}, "manual_review.csv"),
        ({}, "manual_review.csv"),
    ],
)
def test_each_finding_is_in_one_report(values, report) -> None:
    assert report_of(finding(**values)) == report


@pytest.mark.parametrize(
    ("message", "advice", "tips"),
    [
        ("It is absent", "Use mstx", "It is absent. Use mstx"),
        ("It is absent.", "Use mstx", "It is absent. Use mstx"),
        ("It is absent", "", "It is absent"),
        ("", "Use mstx", "Use mstx"),
        ("It is absent: Use mstx", "Use mstx", "It is absent: Use mstx"),
    ],
)
def test_tips_say_what_is_wrong_and_what_to_do(message, advice, tips) -> None:
    assert row_of("a.py", finding(message=message, advice=advice))["tips"] == tips


RESULT = Result(
    "a.py",
    findings=(
        Finding("NPU101", "m", 1, 1, 1, 2, api="torch.cuda", fix=Fix((), "unsafe", made=True)),
        Finding("NPU501", "m", 2, 1, 2, 2, "error", api="torch.x", verdict=Verdict("torch.x", "absent")),
        Finding("NPU501", "m", 3, 1, 3, 2, "warning", api="torch.x", verdict=Verdict("torch.x", "partial")),
    ),
    left_alone=4,
)


def summary() -> str:
    rows = Counter({"change_list.csv": 1, "unsupported_api.csv": 2, "skipped_files.csv": 1})
    tally = Tally({}, rows=rows, frameworks={"torch": 2})
    tally.add(RESULT, changed=True)
    tally.add(Result("b.py", skipped="why"), changed=False)
    return summary_text(tally, "2.6.0", {"input": "训练"}, 1)


def test_numbers() -> None:
    assert json.loads(summary()) == {
        "schema": 1,
        "npumigrate": __version__,
        "torch": "2.6.0",
        "options": {"input": "训练"},
        "exit_code": 1,
        "entry": "",
        "frameworks": {"torch": 2},
        "files": {"seen": 2, "changed": 1, "skipped": 1, "other": 0, "other_changed": 0},
        "changes": {"total": 1, "unsafe": 1, "by_rule": {"NPU101": {"name": "", "total": 1, "unsafe": 1}}},
        "findings": {
            "total": 2,
            "by_severity": {"blocker": 0, "error": 1, "warning": 1, "info": 0},
            "by_rule": {"NPU501": {"name": "", "total": 2}},
        },
        "left_alone": 4,
        "reports": {
            "change_list.csv": 1,
            "unsupported_api.csv": 2,
            "unknown_api.csv": 0,
            "cuda_op_list.csv": 0,
            "manual_review.csv": 0,
            "skipped_files.csv": 1,
        },
    }


def test_equal_runs_give_equal_bytes() -> None:
    assert summary() == summary()


def test_a_new_file_begins_at_one_megabyte_and_ten_are_kept(tmp_path) -> None:
    logger = logging.getLogger("npumigrate")
    logger.setLevel(logging.INFO)
    with log_to(tmp_path):
        for _ in range(12_000):
            logger.info("x" * 1000)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["npumigrate.log", *(f"npumigrate.log.{number}" for number in range(1, 10))]
    assert all(path.stat().st_size <= 1024 * 1024 for path in tmp_path.iterdir())


def test_after_the_run_nothing_is_written(tmp_path) -> None:
    with log_to(tmp_path):
        pass
    logging.getLogger("npumigrate").error("late")
    assert (tmp_path / "npumigrate.log").read_text() == ""
