"""What surely stops a program is a blocker; where its place may not run, or is tried, it is less."""

from __future__ import annotations

import ast

import pytest

from migrator.core.fix_guards import judged
from migrator.findings.finding import Finding
from migrator.matchers.context import Match
from migrator.names.index import ModuleIndex
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


def test_an_import_that_the_rule_has_judged_is_no_less_where_something_is_caught() -> None:
    tree = "def f():\n    try:\n        import a\n        b()\n    except OSError:\n        pass\n"
    index = ModuleIndex(tree, ("a", "b"))
    nodes = [node for node in ast.walk(index.tree) if isinstance(node, (ast.Import, ast.Call))]
    finding = Finding("NPU600", "m", 1, 1, 1, 1, severity="blocker")
    found = judged(index, [Match(finding, node, False) for node in nodes])
    assert {type(item.node): item.finding.severity for item in found} == {
        ast.Import: "error",
        ast.Call: "warning",
    }
