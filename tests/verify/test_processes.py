"""Running a program to its end, with nothing of it left, in whatever way npumigrate ends; without torch."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.timing import wait_until

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the emulator runs on Linux")

# Starts a process in a session of its own, as torchrun does, and writes its number.
PROGRAM = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"], start_new_session=True)
open("child", "w").write(str(child.pid))
{then}
"""


def start(tmp_path: Path, then: str, timeout: float | None) -> subprocess.Popen[str]:
    """`processes.run` in a Python of its own: it adopts processes and takes signals."""
    (tmp_path / "program.py").write_text(PROGRAM.format(then=then))
    (tmp_path / "notes").mkdir()
    code = f"""
        import os, sys
        from pathlib import Path
        from migrator.verify import processes
        processes._REST = 0.5  # seconds for what outlives the program
        notes = Path("notes").absolute()
        command = [sys.executable, "program.py"]
        ended = processes.run(command, os.environ, Path.cwd(), {timeout}, keep=True, notes=notes)
        print(ended.code, ended.timed_out, ended.interrupted, ended.left, repr(ended.output))
    """
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize(
    ("then", "timeout", "said"),
    [
        (
            "print('out'); print('err', file=sys.stderr); sys.exit(3)",
            60,
            "out\n3 False False 1 'out\\n\\nerr\\n'\n",
        ),
        ("time.sleep(300)", 1, "143 True False 1 '\\n'\n"),
        ("import signal; signal.raise_signal(9)", 60, "137 False False 1 '\\n'\n"),
    ],
)
def test_nothing_is_left(tmp_path, then, timeout, said):
    out, _ = start(tmp_path, then, timeout).communicate(timeout=900)
    assert out == said
    assert (tmp_path / "notes").is_dir()
    assert_gone(tmp_path)


def test_interrupted(tmp_path):
    process = start(tmp_path, "time.sleep(300)", None)
    wait_until((tmp_path / "child").exists)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=900)
    assert out.startswith("130 False True 1 ")
    assert_gone(tmp_path)


def test_interrupted_below_a_shell(tmp_path):
    """The shell waits for its program, which has to get the signal too, as from a terminal."""
    program = (
        "import os, time\ntry:\n    open('below', 'w').write(str(os.getpid()))\n    time.sleep(300)\n"
        "except KeyboardInterrupt:\n    open('in order', 'w')"
    )
    shell = f'subprocess.call(["bash", "-c", "{sys.executable} -c \\"$0\\"; true", {program!r}])'
    process = start(tmp_path, shell, None)
    wait_until((tmp_path / "below").exists)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=900)
    assert out.startswith("130 False True 1 ")
    assert (tmp_path / "in order").exists()  # it was not killed after the time that it has for that


def test_killed(tmp_path):
    process = start(tmp_path, "open('itself', 'w').write(str(os.getpid())); time.sleep(300)", None)
    wait_until(lambda: (tmp_path / "itself").exists() and (tmp_path / "itself").read_text())
    process.kill()
    process.communicate(timeout=900)
    wait_until(lambda: not Path("/proc", (tmp_path / "itself").read_text()).exists())
    assert_gone(tmp_path)
    wait_until(lambda: not (tmp_path / "notes").exists())


def assert_gone(tmp_path: Path) -> None:
    assert not Path("/proc", (tmp_path / "child").read_text()).exists()


# Starts a process as torchrun does, which does not heed SIGTERM.
STUBBORN = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open("rank", "w").write(str(os.getpid()) + "\\n")
time.sleep(300)
"""
LAUNCHED = f"""
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
def launch(tmp_path: Path) -> Callable[[int], subprocess.Popen[bytes]]:
    (tmp_path / "program.py").write_text(textwrap.dedent(LAUNCHED))

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
def test_nothing_is_left_of_a_launch(
    launch: Callable[[int], subprocess.Popen[bytes]], tmp_path: Path, group: bool, number: int
) -> None:
    process = launch(300)
    (os.killpg if group else os.kill)(process.pid, number)
    assert process.wait(timeout=30) != 0
    wait_until(lambda: not any(Path("/proc", pid).exists() for pid in started(tmp_path)))


def test_what_outlives_a_program_that_ends_by_itself_lives_on(
    launch: Callable[[int], subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    assert launch(2).wait(timeout=30) == 0
    itself, rank = started(tmp_path)
    assert not Path("/proc", itself).exists()
    os.kill(int(rank), signal.SIGKILL)


def started(folder: Path) -> list[str]:
    files = (folder / "itself", folder / "rank")
    return [file.read_text().strip() for file in files if file.exists() and file.read_text().endswith("\n")]
