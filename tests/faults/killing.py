"""Kills a command at any moment, and tells what is wrong afterwards."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import uuid
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

ROOT = Path(__file__).parents[2]
# What tells when, and how long it took.
_TIMES = {"npumigrate.log", "repositories.parquet", "index.html"}
_MEASURED = ("seconds", "cpu_seconds", "mark")  # the mark is of all others
_OF_WORKERS = 0.3
_WITHIN = 10.0  # seconds in which what a killed command has started must end


def make_project(folder: Path, files: int = 40) -> None:
    """A project of CUDA whose files are all changed."""
    folder.mkdir(parents=True)
    for number in range(files):
        lines = [f"x{line} = torch.ones({line}).cuda()\n" for line in range(number)]
        (folder / f"part{number:02}.py").write_text("import torch\n" + "".join(lines))
    (folder / "train.sh").write_text("CUDA_VISIBLE_DEVICES=0 python part01.py\n")


def make_repositories(folder: Path, count: int = 4) -> None:
    """Some such projects, the first ones in an archive and with Git, and the list of them."""
    for number in range(count):
        make_project(folder / f"r{number}", 3 + number)
    names = [f"r{number}" for number in range(count)]
    with tarfile.open(folder / "r0.tar.gz", "w:gz") as tar:
        tar.add(folder / "r0", "r0")
    shutil.rmtree(folder / "r0")
    names[0] = "r0.tar.gz"
    if shutil.which("git"):
        user = ("-c", "user.name=a", "-c", "user.email=a@b")
        for line in (("init", "-q"), ("add", "-A"), (*user, "commit", "-qm", "all")):
            subprocess.run(["git", *line], cwd=folder / "r1", check=True)
        (folder / "r1" / ".git").rename(folder / "r1.git")
        shutil.rmtree(folder / "r1")
        names[1] = "r1.git"
    (folder / "repos.txt").write_text("".join(f"{name}\n" for name in names))


@dataclass(frozen=True)
class Command:
    """A command on ``project``, which writes into ``out``, or where it ``writes`` into the project itself.

    ``results`` are the folders in ``out`` that each have to be whole; ``done`` are the files that tell of
    finished work, which is not done again.
    """

    name: str
    arguments: tuple[str, ...]
    writes: bool = False
    make: Callable[[Path], None] = make_project
    results: str = "*"
    done: str = ""


COMMANDS = (
    Command("migrate", ("-i", "project", "-o", "out", "-v", "2.6", "-j", "2", "--overwrite")),
    Command("analyze", ("analyze", "-i", "project", "-o", "out", "-v", "2.6", "-j", "2", "--overwrite")),
    Command("fix", ("lint", "--fix", "--unsafe-fixes", "-v2.6", "-j", "2", "--exit-zero", "project"), True),
    Command(
        "fleet",
        ("fleet", "project/repos.txt", "-o", "out", "-v", "2.6", "-j", "2", "--quiet"),
        make=make_repositories,
        results="migrated/*",
        done="outcomes/*.json",
    ),
)


def contents(folder: Path) -> dict[str, bytes]:
    """Each file below a folder, but for those that tell when they were written; without measured times."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name not in _TIMES)
    return {path.relative_to(folder).as_posix(): _content(path) for path in files}


def _content(file: Path) -> bytes:
    if file.name == "runs.csv":  # a line begins with its date
        return b"\n".join(line.partition(b",")[2] for line in file.read_bytes().splitlines())
    if file.parent.name != "outcomes" or file.suffix != ".json":
        return file.read_bytes()
    outcome = json.loads(file.read_bytes())  # or it is half-written
    return repr({key: value for key, value in outcome.items() if key not in _MEASURED}).encode()


class Trial:
    """One command in a folder of its own, what it makes of the project, and how long it takes."""

    def __init__(self, folder: Path, command: Command) -> None:
        self.folder = folder
        self.command = command
        self.original = folder / "original"
        command.make(self.original)
        self._fresh()
        started = time.monotonic()
        code = self._start("whole").wait()
        assert code == 0, f"{code}: {self.errors.read_text(errors='replace')}"
        self.seconds = time.monotonic() - started
        self.before = contents(self.original)
        self.whole = self._outcome()
        self.stages: Counter[str] = Counter()

    def faults(self, random: Random, moment: float | None = None) -> list[str]:
        """What is wrong after a kill at a moment, and after the same command once more.

        The ``moment`` is a part of the time that the command takes, any where none is given. It is the
        command that is killed, or now and then one of its workers.
        """
        mark = uuid.uuid4().hex
        process = self._start_until(random.random() if moment is None else moment, mark)
        workers = [pid for pid in marked(mark) if pid != process.pid]
        wrong = []
        if workers and random.random() < _OF_WORKERS:
            _kill(random.choice(workers))
            if code := process.wait():
                wrong.append(f"the command whose worker is killed ends with {code}")
        else:
            process.kill()
            process.wait()
        self.stages[self._stage()] += 1
        wrong += self._half_done()
        if left := _left(mark):
            wrong.append(f"processes that live on: {left}")
        done = self._done()
        if code := self._start("again").wait():
            wrong.append(f"the same command once more ends with {code}")
        now = self._outcome()
        if now != self.whole:
            names = sorted(name for name in {*now, *self.whole} if now.get(name) != self.whole.get(name))
            wrong.append(f"the same command once more makes something else of {names[:3]}")
        if not done.items() <= self._done().items():
            wrong.append("finished work is done again")
        if files := [name for name in os.listdir(self.temporary) if not name.startswith("dask-")]:
            wrong.append(f"temporary files are left: {files}")
        if "Traceback" in (said := self.errors.read_text(errors="replace")):
            wrong.append(f"a traceback: {said.strip().splitlines()[-1]}")
        return wrong

    def _start_until(self, moment: float, mark: str) -> subprocess.Popen[bytes]:
        """The command at that moment; where it ends sooner, it takes less time than we knew."""
        while True:
            self._fresh()
            process, started = self._start(mark), time.monotonic()
            try:
                process.wait(moment * self.seconds)
            except subprocess.TimeoutExpired:
                return process
            self.seconds = time.monotonic() - started

    @property
    def errors(self) -> Path:
        """What the commands say in a trial."""
        return self.folder / "errors"

    @property
    def temporary(self) -> Path:
        """The folder for temporary files."""
        return self.folder / "temporary"

    def _done(self) -> dict[str, int]:
        """The files that tell of finished work, with the times when they were written."""
        files = (self.folder / "out").glob(self.command.done) if self.command.done else ()
        return {file.name: file.stat().st_mtime_ns for file in files}

    def _fresh(self) -> None:
        for name in ("project", "out", "temporary"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        self.errors.unlink(missing_ok=True)
        self.temporary.mkdir()
        shutil.copytree(self.original, self.folder / "project")

    def _start(self, mark: str) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "NPUMIGRATE_KILLED": mark}
        environment["TMPDIR"] = str(self.temporary)
        line = [sys.executable, "-m", "migrator", *self.command.arguments]
        with open(self.errors, "ab") as errors:
            return subprocess.Popen(
                line, cwd=self.folder, env=environment, stdout=subprocess.DEVNULL, stderr=errors
            )

    def _outcome(self) -> dict[str, bytes]:
        """The project, where it is written to, or the result; with what should not be there."""
        return contents(self.folder / ("project" if self.command.writes else "out"))

    def _stage(self) -> str:
        """How far a killed command was."""
        now, before = self._outcome(), self.before if self.command.writes else {}
        if now == before:
            return "nothing written"
        return "all written" if self.whole.items() <= now.items() else "some written"

    def _half_done(self) -> list[str]:
        now = contents(self.folder / "project")
        if not self.command.writes:
            wrong = [] if now == self.before else ["the project has changed"]
            out = self.folder / "out"
            for result in out.glob(self.command.results):
                name = result.relative_to(out).as_posix() + "/"
                whole = {each: data for each, data in self.whole.items() if each.startswith(name)}
                found = {name + each: data for each, data in contents(result).items()}
                if not result.name.startswith(".") and found != whole:
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
    end = time.monotonic() + _WITHIN
    while found := marked(mark):
        if time.monotonic() > end:
            for pid in found:
                _kill(pid)
            return found
        time.sleep(0.05)
    return []


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def marked(mark: str) -> list[int]:
    """The processes with a mark in their environment."""
    sign = f"NPUMIGRATE_KILLED={mark}".encode()
    return [pid for pid in _processes() if sign in _environment(pid)]


def _processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()] if os.path.isdir("/proc") else []


def _environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []
