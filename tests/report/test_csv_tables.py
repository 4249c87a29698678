"""The CSV files, read again as other programs read them."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pandas
from hypothesis import given
from hypothesis import strategies as st

from migrator.files.errors import harmless
from migrator.findings.finding import Finding, Fix, Result
from migrator.report.csv_tables import CsvTables
from migrator.report.rows import load_tables, row_of

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
