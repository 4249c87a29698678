"""What a launch has started ends with npumigrate, in whatever way that ends; torch is not needed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the emulator runs on Linux")

# Starts a process as torchrun does, which does not heed SIGTERM.
STUBBORN = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open("rank", "w").write(str(os.getpid()) + "\\n")
time.sleep(300)
"""
PROGRAM = f"""
import os, subprocess, sys, time
subprocess.Popen([sys.executable, "-c", {STUBBORN!r}], start_new_session=True)
open("itself", "w").write(str(os.getpid()) + "\\n")
time.sleep(float(sys.argv[1]))
"""
RUN = """
import os, sys
from migrator.emulator.launch import run
sys.exit(run([sys.executable, "program.py", sys.argv[1]], os.environ))
"""


@pytest.fixture
def start(tmp_path: Path) -> Callable[[int], subprocess.Popen[bytes]]:
    (tmp_path / "program.py").write_text(textwrap.dedent(PROGRAM))

    def begin(seconds: int) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-c", RUN, str(seconds)],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
            start_new_session=True,
        )
        wait_until(lambda: len(started(tmp_path)) == 2)
        return process

    return begin


@pytest.mark.parametrize(
    ("group", "number"), [(False, signal.SIGKILL), (True, signal.SIGKILL), (False, signal.SIGTERM)]
)
def test_nothing_is_left(
    start: Callable[[int], subprocess.Popen[bytes]], tmp_path: Path, group: bool, number: int
) -> None:
    process = start(300)
    (os.killpg if group else os.kill)(process.pid, number)
    assert process.wait(timeout=30) != 0
    wait_until(lambda: not any(Path("/proc", pid).exists() for pid in started(tmp_path)))


def test_what_outlives_a_program_that_ends_by_itself_lives_on(
    start: Callable[[int], subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    assert start(2).wait(timeout=30) == 0
    itself, rank = started(tmp_path)
    assert not Path("/proc", itself).exists()
    os.kill(int(rank), signal.SIGKILL)


def started(folder: Path) -> list[str]:
    files = (folder / "itself", folder / "rank")
    return [file.read_text().strip() for file in files if file.exists() and file.read_text().endswith("\n")]


def wait_until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not done():
        assert time.monotonic() < end
        time.sleep(0.05)
