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
    assert result.text == "x = 2\n"
