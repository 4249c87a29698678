"""A script that runs beside a program: it ends all that the launch has started when npumigrate is gone.

Its standard input is a pipe that only npumigrate can write to: it does so when it ends, unless it is killed.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress

MARK = "NPUMIGRATE_EMULATOR_LEDGER"  # each process of a launch has it, with the launch's own value
RELEASE, END = b"release", b"end"  # what still runs may go on, or not
_PATIENCE = 3.0  # seconds to end in order, once asked to
_LIMIT = 10.0  # seconds for the kernel to end the others


def _main() -> None:
    value, folder = sys.argv[1:]
    last = sys.stdin.buffer.read()
    if last != RELEASE:
        mark = f"{MARK}={value}".encode()
        end_all(lambda: _members(mark))
    if not last and folder:
        shutil.rmtree(folder, ignore_errors=True)


def end_all(members: Callable[[], set[int]]) -> None:
    """End the processes that there are: ask them, and kill those that do not end in time."""
    for number, patience in ((signal.SIGTERM, _PATIENCE), (signal.SIGKILL, _LIMIT)):
        asked: set[int] = set()
        end = time.monotonic() + patience
        while (found := members()) and time.monotonic() < end:
            for pid in found - asked if number == signal.SIGTERM else found:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)
            asked |= found
            time.sleep(0.05)


def _members(mark: bytes) -> set[int]:
    """The processes of a launch that have not ended: those with its mark, and all below them."""
    marked = set()
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError), open(f"/proc/{name}/environ", "rb") as file:
            if mark in file.read().split(b"\0"):
                marked.add(int(name))
    return {pid for pid in marked | below(marked) if stat(pid)[:1] not in ([], ["Z"], ["X"])}


def below(ancestors: Iterable[int]) -> set[int]:
    """The processes below some others, with those that have ended and were not waited for."""
    children: dict[int, list[int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        if fields := stat(int(name)):
            children.setdefault(int(fields[1]), []).append(int(name))
    found: set[int] = set()
    waiting = [*ancestors]
    while waiting:
        new = set(children.get(waiting.pop(), ())) - found
        found |= new
        waiting += new
    return found


def stat(pid: int) -> list[str]:
    """What the kernel reports of a process, its state and its parent first; nothing where it is gone."""
    with suppress(OSError), open(f"/proc/{pid}/stat", errors="replace") as file:
        return file.read().rpartition(")")[2].split()
    return []


if __name__ == "__main__":
    _main()
