"""What the tests take for granted of the process that runs them."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path

import pytest

from tests.leftovers import mark, pytest_runtest_makereport, pytest_runtest_setup

__all__ = [
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_runtest_makereport",
    "pytest_runtest_setup",
]
mark()
os.environ.pop("PYTEST_ADDOPTS", None)  # a pytest that a test starts would write its results over ours

# A process in the background, or below nohup, may ignore these, and what the tests start inherits that.
for number in (signal.SIGINT, getattr(signal, "SIGHUP", signal.SIGTERM)):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)

# Files of few tests that take long, as they start programs: the longest first. The others follow, those with
# most tests first.
_LONG = (
    # The first builds the emulated NPU; those beside it do without.
    *("emulator/test_rule_examples.py", "samples/", "ci/", "packaging/"),
    *("emulator/test_on_npu.py", "emulator/test_ways.py", "emulator/"),
    *("fuzzing/", "faults/", "convert/", "mcp/", "server/", "fleet/"),
    *("launch/", "verify/", "site/", "editors/"),
)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One process more than there are cores: tests of programs that hang or are killed wait for them."""
    return len(os.sched_getaffinity(0)) + 1 if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def pytest_configure(config: pytest.Config) -> None:
    """Let pytest-xdist hand out files in the order below, not by how many tests they have."""
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with the files that take long: no worker waits at the end for the last file of another."""
    if hasattr(config, "workerinput"):
        tests = Counter(item.path for item in items)
        items.sort(key=lambda item: (_long(item), -tests[item.path], item.path))


def _long(item: pytest.Item) -> int:
    place = item.path.relative_to(Path(__file__).parent).as_posix()
    return next((number for number, long in enumerate(_LONG) if place.startswith(long)), len(_LONG))
