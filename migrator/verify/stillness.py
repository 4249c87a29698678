"""Whether the processes of a program do anything: one that waits uses no processor and moves no data."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

_SAMPLE = 1.0  # seconds between two looks
_SHARE = 0.05  # of a core: polls and heartbeats stay below
_MOVED = 1 << 16  # bytes a second


@dataclass
class Stillness:
    """Since when some processes, as ``members`` gives them, have done nothing."""

    members: Callable[[], Iterable[int]]
    _active: float = field(default_factory=time.monotonic)
    _looked: float = field(default_factory=time.monotonic)
    _known: dict[int, tuple[float, int]] = field(default_factory=dict)

    def seconds(self) -> float:
        """For how long nothing has been done."""
        now = time.monotonic()
        if now - self._looked >= _SAMPLE:
            usage = dict(filter(None, map(_usage, self.members())))
            if self._is_active(usage, now - self._looked):
                self._active = now
            self._known, self._looked = usage, now
        return now - self._active

    def _is_active(self, usage: dict[int, tuple[float, int]], seconds: float) -> bool:
        if usage.keys() != self._known.keys():
            return True
        used = sum(now[0] - self._known[pid][0] for pid, now in usage.items())
        moved = sum(now[1] - self._known[pid][1] for pid, now in usage.items())
        return used > _SHARE * seconds or moved > _MOVED * seconds


def _usage(pid: int) -> tuple[int, tuple[float, int]] | None:
    """The seconds of processor time that a process has used, and the bytes that it has read and written."""
    with suppress(OSError, ValueError, IndexError):
        folder = Path(f"/proc/{pid}")
        fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
        if fields[0] in "ZX":
            return None
        used = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        moved = 0
        with suppress(OSError):
            moved = sum(int(line.split()[1]) for line in (folder / "io").read_text().splitlines()[:2])
        return pid, (used, moved)
    return None
