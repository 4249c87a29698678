"""Work in several processes, and what becomes of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from migrator.run.processes import spread

WAITING = """\
import multiprocessing.connection, os, sys, time
from concurrent.futures import ProcessPoolExecutor
from migrator.run.processes import spread

def work(item):
    os.write(1, b"%d\\n" % os.getpid())
    {waits}

if __name__ == "__main__":
    {before}
    list(spread(range(16), 3, work))
"""

# Its workers take their time to start, as copies of it with its way to end.
STARTING = """\
import concurrent.futures.process as pools, os, time
from migrator.cli.start import _end_in_order
from migrator.run.processes import spread

start = pools._process_worker

def slow(*arguments):
    os.write(1, b"%d\\n" % os.getpid())
    time.sleep(1)
    start(*arguments)

if __name__ == "__main__":
    pools._process_worker = slow
    _end_in_order()
    try:
        list(spread(range(16), 2, str))
    except KeyboardInterrupt:
        print("ended in order", flush=True)
"""


def gone(pids: set[int], seconds: float) -> bool:
    """Whether these processes have ended within so many seconds; one that nobody has asked for has."""
    end = time.monotonic() + seconds
    while any(lives(pid) for pid in pids):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
@pytest.mark.parametrize("waits", ["time.sleep(60)", "while True: pass"])
@pytest.mark.parametrize("before", ["pass", "sys.platform = 'another'"])  # with Linux's help, and without
def test_workers_end_when_their_parent_is_killed(tmp_path: Path, waits: str, before: str) -> None:
    script = tmp_path / "waiting.py"
    script.write_text(WAITING.format(waits=waits, before=before))
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout
        workers = {int(parent.stdout.readline()) for _ in range(3)}
        parent.kill()
        parent.wait()
        try:
            assert len(workers) == 3
            assert gone(workers, 2.0 if before == "pass" else 5.0)
        finally:
            for pid in filter(lives, workers):
                os.kill(pid, signal.SIGKILL)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="workers are copies")
@pytest.mark.skipif(sys.version_info >= (3, 14), reason="workers are copies")
def test_workers_that_are_asked_to_end_while_they_start_say_nothing(tmp_path: Path) -> None:
    script = tmp_path / "starting.py"
    script.write_text(STARTING)
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, script], stdout=pipe, stderr=pipe, text=True) as parent:
        assert parent.stdout
        workers = {int(parent.stdout.readline()) for _ in range(2)}
        parent.send_signal(signal.SIGTERM)
        assert parent.communicate(timeout=900) == ("ended in order\n", "")
    assert gone(workers, 2.0)


def test_where_no_thread_can_be_started_one_process_does_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pool whose own thread does not start would wait for ever."""

    def refuse(_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("threading.Thread.start", refuse)
    assert list(spread(range(8), 2, str)) == [str(number) for number in range(8)]
