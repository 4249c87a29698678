"""Files that cannot be read as Python, and what a conversion alone changes."""

from __future__ import annotations

import sys

import pytest

from migrator.core.check import Converted, check
from migrator.findings.finding import Edit, SyntaxTrouble
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
