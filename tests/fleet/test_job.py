"""One repository's job, and what is left of it when its worker is killed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from migrator.files.naming import staging_prefix
from migrator.fleet import job
from migrator.fleet.job import Task, examine
from migrator.fleet.repositories import Repository

# A worker whose job never ends; it prints the process number of that.
WORKER = """
import sys
from migrator.files.naming import staging_prefix
from migrator.fleet import job
from migrator.fleet.repositories import Repository
job._LIMITED = job._LIMITED.partition("from migrator")[0] + "print(os.getpid(), flush=True)\\n" "while 1: 1"
job.examine(Repository("r", "folder", sys.argv[1], ""), job.Task("lint", "2.6", sys.argv[2], 300, 1 << 32))
"""


def test_a_killed_worker_leaves_nothing_running_and_no_files(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr(job.tempfile, "tempdir", None)
    for folder in ("temporary", "r"):
        (tmp_path / folder).mkdir()
    (tmp_path / "r" / "a.py").write_text("import torch\nx = torch.ones(1).cuda()\n")
    line = [sys.executable, "-c", WORKER, str(tmp_path / "r"), str(tmp_path / "out")]
    worker = subprocess.Popen(line, cwd=Path(__file__).parents[2])
    printed = tmp_path / "temporary"
    started = within(
        60, lambda: "".join(file.read_text() for file in printed.glob(".*/new/.printed")).strip()
    )
    worker.kill()
    worker.wait()
    within(60, lambda: not os.path.exists(f"/proc/{started}") or "Z" in state(started))
    assert os.listdir(printed)
    task = Task("lint", "2.6", str(tmp_path / "out"), 300, 1 << 32)
    assert examine(Repository("r", "folder", str(tmp_path / "r"), ""), task)["state"] == "done"
    assert os.listdir(printed) == []


def state(pid: str) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def within(seconds, ask):
    """What is asked, as soon as it is true."""
    end = time.monotonic() + seconds
    while True:
        with suppress(OSError):
            if answer := ask():
                return answer
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_result_that_was_put_half_into_its_place_is_given_back(tmp_path: Path) -> None:
    """Killed between the two renames: the old result is where it was, and the work is done again."""
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "a.py").write_text("import torch\nx = torch.ones(1).cuda()\n")
    task = Task("migrate", "2.6", str(tmp_path / "out"), 300, 1 << 32)
    repository = Repository("r", "folder", str(tmp_path / "r"), "")
    assert examine(repository, task)["state"] == "done"
    results = tmp_path / "out" / "migrated"
    whole = (results / "r" / "a.py").read_text()
    left = results / f"{staging_prefix('r')}12345"
    left.mkdir()
    (results / "r").rename(left / "old")
    outcome = examine(repository, task)
    assert (outcome["state"], outcome["known"]) == ("done", False)
    assert (os.listdir(results), (results / "r" / "a.py").read_text()) == (["r"], whole)
