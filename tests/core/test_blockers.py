"""What surely stops a program is a blocker; where its place may not run, or is tried, it is less."""

from __future__ import annotations

import pytest

from tests.matchers.migrating import migrate


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        ("HERE", "blocker"),
        ("def f():\n    HERE", "error"),
        ("try:\n    HERE\nexcept RuntimeError:\n    pass", "warning"),
        ("try:\n    HERE\nexcept Exception:\n    pass", "warning"),
        ("try:\n    HERE\nexcept Exception:\n    raise", "blocker"),
        ("try:\n    HERE\nexcept KeyError:\n    pass", "error"),
        ("def f():\n    with suppress(OSError):\n        HERE", "warning"),
        ("try:\n    def f():\n        HERE\nexcept RuntimeError:\n    pass", "error"),
    ],
)
def test_the_place_decides(text: str, severity: str) -> None:
    call = "subprocess.run(['nvidia-smi'])"
    (finding,) = migrate("import subprocess\n" + text.replace("HERE", call) + "\n").findings
    assert (finding.code, finding.severity) == ("NPU600", severity)
