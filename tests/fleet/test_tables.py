"""What a fleet's tables rank, and what its page says of what stops repositories."""

from __future__ import annotations

from pathlib import Path

from migrator.fleet.job import Task
from migrator.fleet.tables import RUNS, blocking, findings, repositories, with_this_run, write_page
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
    table = repositories(outcomes)
    runs = with_this_run(tmp_path, task, table, "2026-01-01 10:00")
    page = write_page(tmp_path, task, table, findings(outcomes), summaries, runs)
    row = "<tr><td><code>torch.cuda.cudart</code></td><td>NPU101 <code>torch.cuda</code> API</td>"
    assert row in page.read_text()


def test_the_page_compares_runs(tmp_path: Path) -> None:
    """Each figure has the change since the last run of the command; a damaged file of runs is replaced."""
    (tmp_path / RUNS).write_text("\0,,\n\n'")
    for date, command, blockers, readiness in (
        ("2026-01-01 10:00", "migrate", (3, 0), 40),
        ("2026-01-02 10:00", "lint", (9, 9), None),
        ("2026-01-03 10:00", "migrate", (1, 0), 55),
        ("2026-01-04 10:00", "migrate", (1, 0), 55),  # nothing is new
    ):
        task = Task(command, "2.6.0", str(tmp_path), 60, 1 << 32)
        outcomes = [
            {"name": name, "state": "done", "blocker": count, "error": 2, "readiness": readiness}
            for name, count in zip("ab", blockers)
        ]
        table = repositories(outcomes)
        runs = with_this_run(tmp_path, task, table, date)
        page = write_page(tmp_path, task, table, findings(outcomes), {}, runs).read_text()
    rows = [line for line in page.splitlines() if "2026-01-03" in line]
    cells = [cell.partition("</td>")[0].rpartition(">")[2] for cell in rows[0].split("<td")[1:]]
    assert cells[:6] == ["2026-01-03 10:00", "migrate", "2.6.0", "2 / 2", "1", "1 (-2)"]
    assert (cells[6], cells[-1]) == ("4", "55 (+15)")
    assert len((tmp_path / RUNS).read_text().splitlines()) == 4
