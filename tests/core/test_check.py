"""Files that cannot be read as Python, and what a conversion alone changes."""

from __future__ import annotations

import sys

import pytest

from migrator.core.check import Converted, _unparsed, check
from migrator.findings.finding import Edit, Result, SyntaxTrouble
from migrator.project.project import Project
from tests.checking import document
from tests.matchers.migrating import engine, migrate

RUNNING = ".".join(map(str, sys.version_info[:2]))


def test_what_is_nested_too_deeply_is_left() -> None:
    result = migrate("import torch\nx = torch.cuda" + ".a" * 100_000 + "\n")
    reason = "an expression is nested too deeply to be parsed"
    assert (result.text, result.findings, result.skipped) == (None, (), reason)
    assert result.syntax == (SyntaxTrouble(0, reason),)


@pytest.mark.parametrize(
    ("text", "line", "hint"),
    [
        ("print 'x', torch.cuda\n", 2, "; Python 2 code? Convert it to Python 3 first"),
        ("match x:\n    torch.cuda.(\n", 3, "; syntax of a newer Python? Run npumigrate with that one"),
        ("x = torch.cuda.(\n", 2, ""),
    ],
)
def test_what_does_not_parse_is_left_with_its_line_and_a_hint(text: str, line: int, hint: str) -> None:
    result = migrate(f"import torch\n{text}")
    (trouble,) = result.syntax
    assert result.text is None
    assert result.skipped == f"line {line}: {trouble.message}"
    assert trouble.line == line
    assert trouble.message.startswith(f"not valid Python {RUNNING} (")
    assert trouble.message.endswith(f"){hint}")


def test_a_conversion_stays_where_no_rule_starts() -> None:
    converted = Converted("x = 1\n", (Edit(4, 5, "2"),))
    result = check(document("a.py", "x = 1\n"), engine("2.6"), Project(), converted=converted)
    assert result.text == converted.text == "x = 2\n"


def test_a_fix_that_waits_for_a_later_pass_has_its_edits_about_the_input() -> None:
    call = "torch.cuda.nvtx.range_push(torch.cuda.get_sync_debug_mode())"
    text = f"import torch\n{call}\n"
    found = check(document("a.py", text), engine("2.6"), Project(), write=False).findings
    edits = {finding.api: finding.fix.edits for finding in found if finding.fix}
    assert edits == {
        "torch_npu": (Edit(13, 13, "import torch_npu\n"),),
        "torch.cuda.nvtx.range_push": (Edit(13, len(text), ""),),
        "torch.cuda.get_sync_debug_mode": (Edit(46, 50, "npu"),),
    }


@pytest.mark.parametrize(
    ("name", "text", "left"),
    [
        ("c.yaml", "device: cuda\nx: [\n", "line 3: not read as yaml (did not find expected node content)"),
        ("c.json", '{"device": "cuda",\n "x": }\n', "line 2: not read as json ('}' is not expected here)"),
    ],
)
def test_another_file_that_is_not_of_its_type_is_left_with_the_reason(
    name: str, text: str, left: str
) -> None:
    result = check(document(name, text), engine("2.6"), Project())
    assert result == Result(name, left=f"{left}: left unchanged", type=name.rpartition(".")[2])


def test_another_file_is_marked_with_its_type_whether_or_not_a_rule_starts() -> None:
    changed = check(document("c.yaml", "backend: nccl\n"), engine("2.6"), Project())
    assert (changed.name, changed.type, changed.text) == ("c.yaml", "yaml", "backend: hccl\n")
    assert check(document("c.yaml", "x: 1\n"), engine("2.6"), Project()) == Result("c.yaml", type="yaml")


def test_a_file_with_a_null_byte_is_named() -> None:
    result = check(document("a.py", "import torch.cuda\0\n"), engine("2.6"), Project())
    assert result == Result("a.py", skipped="holds NUL bytes: not a Python source file")


def test_an_error_without_a_line_names_none() -> None:
    result = _unparsed("a.py", "torch", SyntaxError("odd"))
    assert result.skipped == f"not valid Python {RUNNING} (odd)"
    assert result.syntax == (SyntaxTrouble(0, result.skipped),)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("x = (", "Missing parentheses in call to 'print'", "Python 2 code?"),
        ("  print x", "odd", "Python 2 code?"),
        ("try:\n    x\nexcept E , e :", "odd", "Python 2 code?"),
        ("print(x)\nprint = x", "odd", ""),
        ("match = x", "odd", ""),
        ("type X = int", "odd", "syntax of a newer Python?"),
        ("except* E:", "odd", "syntax of a newer Python?"),
        ("a\n  case 1 if y:", "odd", "syntax of a newer Python?"),
    ],
)
def test_what_a_text_looks_like(text: str, message: str, hint: str) -> None:
    skipped = _unparsed("a.py", text, SyntaxError(message, ("a.py", 7, 1, text))).skipped
    assert skipped.startswith(f"line 7: not valid Python {RUNNING} ({message})")
    assert ("; " in skipped) == bool(hint)
    assert hint in skipped
