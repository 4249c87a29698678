"""What a test has started ends with it: one that fails, or runs out of time, leaves no process behind.

Programs start others in sessions of their own (torchrun does so with each rank), so ending a child, or its
process group, is not enough. What the tests start inherits a mark in its environment, and is found by that.
"""

from __future__ import annotations

import os
import signal
import time
import uuid
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path

import pytest

_MARK = "NPUMIGRATE_TESTED_BY"
_STARTED = pytest.StashKey[float]()


def mark() -> None:
    """Mark what this process starts from now on."""
    os.environ[_MARK] = uuid.uuid4().hex  # not in its own environment as /proc has it


def end_all(since: float) -> list[int]:
    """Kill what this process, or what is below it, has started since a time; return the numbers."""
    sign = f"{_MARK}={os.environ[_MARK]}".encode()
    ticks = since * os.sysconf("SC_CLK_TCK") - 1
    ended: list[int] = []
    while found := [pid for pid in _marked(sign) if _start(pid) >= ticks and pid not in ended]:
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        ended += found
    return ended


def _marked(sign: bytes) -> list[int]:
    found = []
    for name in filter(str.isdigit, os.listdir("/proc") if os.path.isdir("/proc") else ()):
        with suppress(OSError):
            if sign in Path("/proc", name, "environ").read_bytes().split(b"\0"):
                found.append(int(name))
    return found


def _start(pid: int) -> int:
    """When a process was started, in ticks since the boot; -1 where it is gone."""
    with suppress(OSError, IndexError):
        return int(Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[19])
    return -1


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Note when the test begins."""
    item.stash[_STARTED] = time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """End what a test that failed has started."""
    report = yield
    if report.failed and _STARTED in item.stash and (ended := end_all(item.stash[_STARTED])):
        report.sections.append(("processes that were left, and killed", " ".join(map(str, ended))))
    return report
