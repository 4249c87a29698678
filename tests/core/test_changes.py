"""Before and After of single changes: of those in very long lines, and of a conversion's."""

from __future__ import annotations

import pytest

from migrator.core.changes import of_conversion
from migrator.files.lines import Lines
from migrator.findings.edits import OffsetMap, apply
from migrator.findings.finding import Edit, Finding, Fix
from tests.matchers.migrating import migrate

LONG = "x = ['ü', " + "1, " * 1000 + "torch.cuda.is_available()]"
TEXT = "a = 1\n\nb = 2\n"
EDITS = (Edit(0, 0, "import x\n"), Edit(6, 6, "import y\n"), Edit(12, 12, "\nc = 3\nimport y"))


def test_of_a_very_long_line_the_part_that_changes_is_told() -> None:
    _, found = migrate(f"import torch\n{LONG}\n").findings
    assert found.fix
    assert (found.fix.before, found.fix.after) == ("torch.cuda.is_available", "torch.npu.is_available")


@pytest.mark.parametrize(
    ("line", "fix", "before", "after"),
    [
        (1, Fix((), "safe", "INSERT", after="import y\nmore"), "", "import y"),  # where it is first
        (1, Fix((), "safe", "INSERT", after="import z"), "", "import z"),  # what no edit inserts
        (1, Fix((), "safe", "INSERT", after="import x"), "", "import x"),
        (3, Fix((), "safe"), "b = 2", "b = 2\nc = 3\nimport y"),  # with what is put behind it
    ],
)
def test_the_change_of_a_conversion(line: int, fix: Fix, before: str, after: str) -> None:
    finding = Finding("NPU700", "m", line, 1, line, 6, fix=fix)
    result = Lines(apply(TEXT.encode(), EDITS).decode())
    made = of_conversion(finding, EDITS, Lines(TEXT), result, OffsetMap().then(EDITS))
    assert made.fix == fix._replace(before=before, after=after)


def test_what_a_conversion_only_reports_stays_as_it_is() -> None:
    finding = Finding("NPU700", "m", 1, 1, 1, 6)
    assert of_conversion(finding, (), Lines(TEXT), Lines(TEXT), OffsetMap()) is finding
