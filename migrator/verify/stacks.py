"""Where the processes of a run are: the stacks that they write when they are asked."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_SIGNAL = signal.SIGRTMAX - 3  # as bootstrap/npumigrate_emulator/waiting.py has it
_ANSWER = 2.0  # seconds for all to answer
_FRAME = re.compile(r'  File "(.+)", line (\d+) in (.+)')


@dataclass(frozen=True)
class Call:
    """One call of a stack."""

    file: str
    line: int
    function: str


@dataclass(frozen=True)
class Stack:
    """Where a process was: the calls of its main thread, the innermost first."""

    pid: int
    rank: str | None
    calls: tuple[Call, ...]

    @property
    def who(self) -> str:
        """Its name for a person."""
        return process_name(self.pid, self.rank)

    def own(self, folder: Path) -> tuple[int, Call] | None:
        """The innermost call of the project in ``folder``, and its place in the stack."""
        return next((each for each in enumerate(self.calls) if is_own(each[1].file, folder)), None)


def process_name(pid: int, rank: str | None) -> str:
    """The name of a process for a person."""
    return f"process {pid}" if rank is None else f"rank {rank}"


def is_installed(file: str) -> bool:
    """Whether a file is an installed package's, also of an environment in the project's folder."""
    return f"{os.sep}site-packages{os.sep}" in file


def is_own(file: str, folder: Path) -> bool:
    """Whether a file is the program's own: the project's in ``folder``."""
    root = os.path.join(os.path.realpath(folder), "")
    return os.path.realpath(file).startswith(root) and not is_installed(file)


def ask_where(notes: Path) -> None:
    """Let the processes that have a file in ``notes`` write their stacks, and wait a little for that."""
    asked = []
    for path in notes.glob("stacks-*.txt"):
        with suppress(OSError, ValueError):
            os.kill(int(path.stem.partition("-")[2]), _SIGNAL)
            asked.append(path)
    end = time.monotonic() + _ANSWER
    while time.monotonic() < end and not all(_is_complete(path) for path in asked):
        time.sleep(0.05)


def _is_complete(path: Path) -> bool:
    with suppress(OSError):
        return path.stat().st_size > 0
    return True


def read_stacks(notes: Path) -> list[Stack]:
    """The stacks that were written, by rank and number; of DataLoader workers and the like too."""
    found = []
    for path in notes.glob("stacks-*.txt"):
        text = path.read_text(encoding="utf-8", errors="replace")
        threads = re.split(r"^(?=(?:Current thread|Thread) 0x)", text, flags=re.M)
        # The main thread is the oldest one, which is written last.
        frames = _FRAME.findall(threads[-1])
        if frames:
            about = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
            calls = tuple(Call(file, int(line), function) for file, line, function in frames)
            found.append(Stack(int(path.stem.partition("-")[2]), about["rank"], calls))
    return sorted(found, key=lambda stack: (stack.rank is None, stack.rank or "", stack.pid))
