"""One repository's job, and what is left of it when its worker is killed."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

import migrator
from migrator.files.replacing import staging_prefix
from migrator.fleet import job
from migrator.fleet.job import Task, examine
from migrator.fleet.repositories import Repository
from tests.faults.killing import marked
from tests.reading import write

PROGRAM = "import torch\nx = torch.ones(1).cuda()\n"

# A worker whose job never ends; the job writes its process number.
WORKER = """
import sys
from migrator.files.replacing import staging_prefix
from migrator.fleet import job
from migrator.fleet.repositories import Repository
job._START = "import os; print(os.getpid(), file=open('.started', 'w'), flush=True)\\n" "while 1: 1"
job.examine(Repository("r", "folder", sys.argv[1], ""), job.Task("lint", "2.6", sys.argv[2], 300, 1 << 32))
"""


def test_a_killed_worker_leaves_nothing_running_and_no_files(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr(job.tempfile, "tempdir", None)
    (tmp_path / "temporary").mkdir()
    write(tmp_path, {"r/a.py": PROGRAM})
    line = [sys.executable, "-c", WORKER, str(tmp_path / "r"), str(tmp_path / "out")]
    worker = subprocess.Popen(line, cwd=Path(__file__).parents[2])
    printed = tmp_path / "temporary"
    started = within(
        60, lambda: "".join(file.read_text() for file in printed.glob(".*/new/.started")).strip()
    )
    worker.kill()
    worker.wait()
    within(60, lambda: not os.path.exists(f"/proc/{started}") or "Z" in state(started))
    assert os.listdir(printed)
    task = Task("lint", "2.6", str(tmp_path / "out"), 300, 1 << 32)
    assert examine(Repository("r", "folder", str(tmp_path / "r"), ""), task)["state"] == "done"
    assert os.listdir(printed) == []


def test_a_job_is_done_by_the_npumigrate_that_asks_for_it(tmp_path: Path) -> None:
    program = job._START.replace("main()", "import migrator; print(migrator.__file__)")
    done = subprocess.run([sys.executable, "-I", "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.strip() == migrator.__file__, done.stderr


# A worker that fetches from a server that never answers: git waits, and what git has started for the address.
FETCHING = """
import sys
from pathlib import Path
from types import SimpleNamespace
from migrator.fleet.repositories import Repository, obtain
obtain(Repository("r", "git", sys.argv[1], ""), Path(sys.argv[2]), "", float(sys.argv[3]))
"""


@pytest.mark.skipif(not Path("/proc").is_dir() or not shutil.which("git"), reason="needs git and /proc")
@pytest.mark.parametrize("killed", [True, False], ids=["killed", "out of time"])
def test_git_ends_with_its_worker_and_with_its_time(tmp_path: Path, killed: bool) -> None:
    mark = uuid.uuid4().hex
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/r.git"
        worker = subprocess.Popen(
            [sys.executable, "-c", FETCHING, address, str(tmp_path), "300" if killed else "3"],
            cwd=Path(__file__).parents[2],
            env={**os.environ, "NPUMIGRATE_KILLED": mark},
            stderr=subprocess.PIPE,
        )
        silent.settimeout(60)
        with silent.accept()[0]:
            if killed:
                assert len(marked(mark)) > 2
                worker.kill()
            said = worker.communicate(timeout=900)[1]
            assert killed or b"not there after 3 s" in said
            within(10, lambda: not marked(mark))


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
    write(tmp_path, {"r/a.py": PROGRAM})
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


def test_a_dask_that_cannot_close_takes_nothing_back(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")

    @contextmanager
    def client(*_: object) -> Iterator[SimpleNamespace]:
        yield SimpleNamespace(dashboard_link="")
        raise TimeoutError

    outcome = {"name": "r", "state": "done"}
    repository = Repository("r", "folder", "r")
    monkeypatch.setattr(job, "_client", client)
    monkeypatch.setattr(job, "_outcomes", lambda *_: [(repository, outcome)])
    task = Task("lint", "2.6", "out", 300, 1 << 32)
    assert job.examine_all([repository], task, None, 2, 0, lambda _: None) == [outcome]
