"""A script that runs beside a program: it ends all that the launch has started when npumigrate is gone.

Its standard input is a pipe that only npumigrate can write to: it does so when it ends, unless it is killed.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from contextlib import suppress

MARK = "NPUMIGRATE_EMULATOR_LEDGER"  # each process of a launch has it, with the launch's own value
RELEASE, END = b"release", b"end"  # what still runs may go on, or not
_PATIENCE = 3.0  # seconds to end in order, once asked to
_LIMIT = 10.0  # seconds for the kernel to end the others


def _main() -> None:
    value, folder = sys.argv[1:]
    last = sys.stdin.buffer.read()
    if last != RELEASE:
        _end_all(f"{MARK}={value}".encode())
    if not last and folder:
        shutil.rmtree(folder, ignore_errors=True)


def _end_all(mark: bytes) -> None:
    for number, patience in ((signal.SIGTERM, _PATIENCE), (signal.SIGKILL, _LIMIT)):
        asked: set[int] = set()
        end = time.monotonic() + patience
        while (found := _members(mark)) and time.monotonic() < end:
            for pid in found - asked if number == signal.SIGTERM else found:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)
            asked |= found
            time.sleep(0.05)


def _members(mark: bytes) -> set[int]:
    """The processes of a launch: those with its mark, and all below them."""
    children: dict[int, list[int]] = {}
    waiting: list[int] = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError, IndexError, ValueError):
            with open(f"/proc/{name}/stat", "rb") as file:
                state, parent = file.read().rpartition(b")")[2].split()[:2]
            if state in b"ZX":
                continue
            children.setdefault(int(parent), []).append(int(name))
            with open(f"/proc/{name}/environ", "rb") as file:
                if mark in file.read().split(b"\0"):
                    waiting.append(int(name))
    found: set[int] = set()
    while waiting:
        pid = waiting.pop()
        if pid not in found:
            found.add(pid)
            waiting += children.get(pid, [])
    return found


if __name__ == "__main__":
    _main()
