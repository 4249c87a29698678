"""What a fleet's page says of what stops repositories."""

from __future__ import annotations

from pathlib import Path

from migrator.fleet.job import Task
from migrator.fleet.tables import findings, repositories, write_page
from tests.checking import every_rule


def test_what_stops_is_not_said_to_have_an_equivalent(tmp_path: Path) -> None:
    """A rule of many names finds some without an equivalent; backquotes of its summary are no text."""
    found = [["NPU101", "torch.cuda.cudart", "error", "absent", "", 2]]
    outcomes = [{"name": "a", "source": "a", "state": "done", "findings": found}]
    task = Task("migrate", "2.6.0", str(tmp_path), 60, 1 << 32)
    summaries = {rule.code: rule.summary for rule in every_rule()}
    page = write_page(tmp_path, task, repositories(outcomes), findings(outcomes), summaries)
    row = "<tr><td><code>torch.cuda.cudart</code></td><td>NPU101 <code>torch.cuda</code> API</td>"
    assert row in page.read_text()
