"""What a fleet's tables rank, and what its page says of what stops repositories."""

from __future__ import annotations

from pathlib import Path

from migrator.fleet.job import Task
from migrator.fleet.tables import blocking, findings, repositories, write_page
from tests.checking import every_rule


def test_names_of_one_repository_share_a_row() -> None:
    """Forty kernels of one repository do not hide what stops two."""
    own = [["NPU652", f"Kernel{number}", "error", "", "", 50 - number] for number in range(40)]
    shared = ["NPU501", "torch.cuda.nvtx.mark", "error", "unsupported", "", 2]
    fixed = ["NPU101", "torch.cuda.empty_cache", "error", "", "safe", 9]
    found = findings(
        [{"name": "a", "findings": [*own, shared, fixed]}, {"name": "b", "findings": [shared, own[0]]}]
    )
    rows = [tuple(row) for row in blocking(found).itertuples(index=False)]
    assert rows == [
        ("Kernel0", "NPU652", 2, 100),
        ("torch.cuda.nvtx.mark", "NPU501", 2, 4),
        ("Kernel1, Kernel2, Kernel3 (+36)", "NPU652", 1, sum(50 - number for number in range(1, 40))),
    ]


def test_names_of_the_same_repositories_share_a_row() -> None:
    """What one library brings into two repositories is one row; what stops others, too, has its own."""
    copied = [["NPU652", f"copied{number}", "error", "", "", 1] for number in range(4)]
    other = ["NPU652", "other", "error", "", "", 1]
    outcomes = [{"name": name, "findings": [*copied, other]} for name in "ab"]
    found = findings([*outcomes, {"name": "c", "findings": [other]}])
    rows = [tuple(row) for row in blocking(found).itertuples(index=False)]
    assert rows == [("other", "NPU652", 3, 3), ("copied0, copied1, copied2 (+1)", "NPU652", 2, 8)]


def test_nothing_stops_what_has_no_findings() -> None:
    assert blocking(findings([{"name": "a", "findings": []}])).empty


def test_what_stops_is_not_said_to_have_an_equivalent(tmp_path: Path) -> None:
    """A rule of many names finds some without an equivalent; backquotes of its summary are no text."""
    found = [["NPU101", "torch.cuda.cudart", "error", "absent", "", 2]]
    outcomes = [{"name": "a", "source": "a", "state": "done", "findings": found}]
    task = Task("migrate", "2.6.0", str(tmp_path), 60, 1 << 32)
    summaries = {rule.code: rule.summary for rule in every_rule()}
    page = write_page(tmp_path, task, repositories(outcomes), findings(outcomes), summaries)
    row = "<tr><td><code>torch.cuda.cudart</code></td><td>NPU101 <code>torch.cuda</code> API</td>"
    assert row in page.read_text()
