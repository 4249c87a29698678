"""Kills a command at any moment, and tells what is wrong afterwards."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

ROOT = Path(__file__).parents[2]
_TIMES = {"npumigrate.log"}  # which tells when
_WITHIN = 10.0  # seconds in which what a killed command has started must end


@dataclass(frozen=True)
class Command:
    """A command on ``project``, which writes into ``out``, or where it ``writes`` into the project itself."""

    name: str
    arguments: tuple[str, ...]
    writes: bool = False


COMMANDS = (
    Command("migrate", ("-i", "project", "-o", "out", "-v", "2.6", "-j", "2", "--overwrite")),
    Command("analyze", ("analyze", "-i", "project", "-o", "out", "-v", "2.6", "-j", "2", "--overwrite")),
    Command("fix", ("lint", "--fix", "--unsafe-fixes", "-v2.6", "-j", "2", "--exit-zero", "project"), True),
)


def make_project(folder: Path, files: int = 40) -> None:
    """A project of CUDA whose files are all changed."""
    folder.mkdir(parents=True)
    for number in range(files):
        lines = [f"x{line} = torch.ones({line}).cuda()\n" for line in range(number)]
        (folder / f"part{number:02}.py").write_text("import torch\n" + "".join(lines))
    (folder / "train.sh").write_text("CUDA_VISIBLE_DEVICES=0 python part01.py\n")


def contents(folder: Path) -> dict[str, bytes]:
    """Each file below a folder, but for those that tell when they were written."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name not in _TIMES)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


class Trial:
    """One command in a folder of its own, what it makes of the project, and how long it takes."""

    def __init__(self, folder: Path, command: Command, make: Callable[[Path], None] = make_project) -> None:
        self.folder = folder
        self.command = command
        self.original = folder / "original"
        make(self.original)
        self._fresh()
        started = time.monotonic()
        assert self._start("whole").wait() == 0
        self.seconds = time.monotonic() - started
        self.before = contents(self.original)
        self.whole = self._outcome()

    def faults(self, random: Random) -> list[str]:
        """What is wrong after a kill at a random moment, and after the same command once more."""
        self._fresh()
        mark = uuid.uuid4().hex
        process = self._start(mark)
        time.sleep(random.uniform(0.1, 1.1) * self.seconds)
        process.kill()
        process.wait()
        wrong = self._half_done()
        if left := _left(mark):
            wrong.append(f"processes that live on: {left}")
        if code := self._start("again").wait():
            wrong.append(f"the same command once more ends with {code}")
        if self._outcome() != self.whole:
            wrong.append("the same command once more makes something else")
        return wrong

    def _fresh(self) -> None:
        for name in ("project", "out"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        shutil.copytree(self.original, self.folder / "project")

    def _start(self, mark: str) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "NPUMIGRATE_KILLED": mark}
        line = [sys.executable, "-m", "migrator", *self.command.arguments]
        return subprocess.Popen(line, cwd=self.folder, env=environment, stdout=subprocess.DEVNULL)

    def _outcome(self) -> dict[str, bytes]:
        """The project, where it is written to, or the result; with what should not be there."""
        return contents(self.folder / ("project" if self.command.writes else "out"))

    def _half_done(self) -> list[str]:
        now = contents(self.folder / "project")
        if not self.command.writes:
            wrong = [] if now == self.before else ["the project has changed"]
            results = {
                path.name: contents(path)
                for path in (self.folder / "out").glob("*")
                if not path.name.startswith(".")
            }
            whole = {name for result in results for name in self.whole if name.startswith(f"{result}/")}
            found = {
                f"{name}/{file}": data for name, files in results.items() for file, data in files.items()
            }
            if found != {name: self.whole[name] for name in whole}:
                wrong.append("a part of a result looks like a result")
            return wrong
        return [
            f"{name} is neither as it was nor fixed"
            for name, data in now.items()
            if data not in (self.before.get(name), self.whole.get(name)) and not _is_aside(name)
        ]


def _is_aside(name: str) -> bool:
    """Whether a file is one that was about to take another's place, or of the cache."""
    return Path(name).name.startswith(".npumigrate-") or ".npumigrate_cache" in name


def _left(mark: str) -> list[int]:
    """The processes with a mark in their environment that do not end in time; they are ended."""
    sign, end = f"NPUMIGRATE_KILLED={mark}".encode(), time.monotonic() + _WITHIN
    while found := [pid for pid in _processes() if sign in _environment(pid)]:
        if time.monotonic() > end:
            for pid in found:
                os.kill(pid, 9)
            return found
        time.sleep(0.05)
    return []


def _processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()] if os.path.isdir("/proc") else []


def _environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []
