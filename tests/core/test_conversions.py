"""What a conversion writes, on its way through the rules."""

from __future__ import annotations

from migrator.core.check import Converted, check
from migrator.findings.finding import Edit
from migrator.project.project import Project
from tests.checking import document
from tests.matchers.migrating import engine

TEXT = "import torch\nwindow = torch._foreach_clone(3)\n"


def findings(edit: Edit) -> list[int]:
    """The lines of NPU504 (nothing is known of _foreach_clone)."""
    converted = Converted(TEXT, (edit,))
    result = check(
        document("example.py", TEXT), engine("2.6", select=("NPU504",)), Project(), converted=converted
    )
    return [finding.line for finding in result.findings if finding.code == "NPU504"]


def test_what_a_conversion_wrote_is_no_finding() -> None:
    assert findings(Edit(13, 13, "other = torch._foreach_clone(4)\n")) == [2]


def test_what_a_conversion_kept_is_one() -> None:
    assert findings(Edit(13, len(TEXT) - 1, "if window:\n    window = torch._foreach_clone(3)")) == [2]
