"""Why a program fails, or waits: the table of errors knows the one, ``reports/waiting.yaml`` the other."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from linecache import checkcache, getline
from operator import itemgetter
from pathlib import Path
from typing import Any, Optional

from migrator.data_folders import reports_yaml
from migrator.explain.table import Entry, entry_for
from migrator.field_types import built
from migrator.insight.recorded import noted
from migrator.language import N_, _
from migrator.light import Frozen

_SIGNAL = signal.SIGRTMAX - 3  # as bootstrap/npumigrate_emulator/waiting.py has it
_ANSWER = 2.0  # seconds for all to answer
_FRAME = re.compile(r'  File "(.+)", line (\d+) in (.+)')
_ELSEWHERE: Mapping[str, Any] = {"name": "waits", "advice": N_("check the line where it waits")}


class Frame(Frozen):
    """One call of a stack; lines are 1-based, columns in bytes, -1 where not known.

    ``values`` are those of the names on its line: ``expression``, ``kind``, ``device``, …
    """

    file: str
    line: int
    function: str
    source: str = ""
    column: int = -1
    end_line: int = -1
    end_column: int = -1
    values: tuple[Mapping[str, Any], ...] = ()


class Stack(Frozen):
    """Where the main thread of a process was; the innermost of its frames is the last one."""

    process: int
    rank: Optional[str]
    frames: tuple[Frame, ...]

    @property
    def who(self) -> str:
        """The process for a person."""
        return process_name(self.process, self.rank)

    def own(self, folder: Path) -> Frame | None:
        """The innermost call of the project in ``folder``."""
        return next((frame for frame in reversed(self.frames) if is_own(frame.file, folder)), None)


class Failure(Stack):
    """An exception that ended a process, or was being handled when the process gave up."""

    type: str
    kinds: tuple[str, ...]
    text: str

    @property
    def line(self) -> str:
        """Type and message on one line."""
        return f"{self.type}: {' '.join(self.text.split())}"[:300]

    @property
    def place(self) -> str:
        """The innermost line outside of installed packages, in brackets, for a person."""
        inner = self.written[-1:]
        return "".join(f" ({os.path.basename(frame.file)}:{frame.line})" for frame in inner)

    @property
    def written(self) -> list[Frame]:
        """The calls outside of installed packages."""
        return [frame for frame in self.frames if not is_installed(frame.file)]


class Lack(Frozen):
    """What is missing for a program; ``lines`` say who failed or waits, and where."""

    name: str
    lines: tuple[str, ...]
    advice: str


def read_failures(notes: Path, kind: str = "failure") -> list[Failure]:
    """The failures that processes noted, in their order; of kind ``lost``, mixed precision that is off."""
    return [built(Failure, data) for data in sorted(noted(notes, kind), key=itemgetter("time"))]


def what_fails(failures: Sequence[Failure], folder: Path) -> tuple[Lack | None, Entry | None]:
    """What was missing for a failed program, and the entry for its first failure that follows from no other.

    The one is None where that is not the reason, as far as is known; both are where it is not known.
    """
    entry = None
    for failure in failures:
        entry = entry_for(f"{failure.type}: {failure.text}", failure.kinds)
        if entry is None or not entry.follows or entry.lacks:
            break
    if entry is None or not entry.lacks:
        return None, entry
    own, said = failure.own(folder), entry.said()
    place = f" at {_shown(own, folder)}" if own else ""
    return Lack(said.name, (f"{failure.who}{place}: {failure.line}",), " ".join(said.do)), entry


def what_waits(stacks: Sequence[Stack], folder: Path) -> Lack | None:
    """For what a program waits; None where its processes did not say where they are."""
    waits = reports_yaml("waiting.yaml")["waits"]
    found, lines = [], []
    for stack in stacks:
        own = stack.own(folder)
        if own is not None:
            inside = stack.frames[[frame is own for frame in stack.frames].index(True) + 1 :]
            found.append(next((entry for entry in waits if _fits(entry, own, inside)), _ELSEWHERE))
            where = f"in {inside[0].function} at" if inside else "at"
            lines.append(_("{who} waits {stack}", who=stack.who, stack=f"{where} {_shown(own, folder)}"))
    if not found:
        return None
    # A process that waits for those below it does so because of what they wait for.
    entry = min(found, key=[*waits, _ELSEWHERE].index)
    return Lack(_(entry["name"]), tuple(lines), _(entry["advice"]))


def _fits(entry: Mapping[str, Any], call: Frame, inside: Sequence[Frame]) -> bool:
    """Whether a sign of ``waiting.yaml`` is that of a program's call, with those that it led to."""
    return bool(
        ("source" in entry and not inside and re.search(entry["source"], call.source))
        or {one.function for one in inside}.intersection(entry.get("calls", ()))
        or ("files" in entry and any(re.search(entry["files"], one.file) for one in inside))
    )


def _shown(place: Frame, folder: Path) -> str:
    return f"{os.path.relpath(os.path.realpath(place.file), folder.resolve())}:{place.line}"


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
    while time.monotonic() < end and any(path.exists() and not path.stat().st_size for path in asked):
        time.sleep(0.05)


def read_stacks(notes: Path) -> list[Stack]:
    """The stacks that were written, by rank and number; of DataLoader workers and the like too."""
    found = []
    ranks = {data["process"]: data["rank"] for data in noted(notes, "stacks")}
    checkcache()  # a repair has changed lines since the last run
    for path in notes.glob("stacks-*.txt"):
        text = path.read_text(encoding="utf-8", errors="replace")
        # The main thread is the oldest one, which is written last; its innermost call first.
        thread = re.split(r"^(?=(?:Current thread|Thread) 0x)", text, flags=re.M)[-1]
        frames = [Frame(f, int(n), name, getline(f, int(n)).strip()) for f, n, name in _FRAME.findall(thread)]
        if frames:
            process = int(path.stem.partition("-")[2])
            found.append(Stack(process, ranks.get(process), tuple(reversed(frames))))
    return sorted(found, key=lambda stack: (stack.rank is None, stack.rank or "", stack.process))
