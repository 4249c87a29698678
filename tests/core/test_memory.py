"""What a finding takes of memory while its file is checked: a file of 11 MB may have 380,000 of them."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable

import pytest

from migrator.core import readable
from migrator.core.check import check, every_fix
from migrator.core.rules import rules_for
from migrator.core.settings import Settings
from migrator.files.document import document
from migrator.names import index, large, tree
from migrator.project.project import Project

FUNCTION = """

def step_{number}(x, y):
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    z = x.to("cuda:0")
    w = torch.ones(2, device="cuda")
    torch.cuda.set_device({number})
    s = torch.cuda.Stream()
    y = y.cuda()
    return z.to("cuda") + w
"""


@pytest.mark.parametrize(
    "write", [False, pytest.param(True, marks=pytest.mark.thorough)], ids=["found", "fixed"]
)
def test_bytes_of_a_finding(write: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (tree, readable):
        monkeypatch.setattr(module, "LARGE", 1000)
    monkeypatch.setattr("migrator.core.check.LARGE", 1000)
    monkeypatch.setattr(large, "_PIECE", 1000)
    monkeypatch.setattr(index, "_MOST_ANSWERS", 100)
    rules = rules_for(Settings(version="2.6"))

    def found(count: int) -> int:
        text = "import torch\n" + "".join(FUNCTION.format(number=number) for number in range(count))
        made = check(document(text.encode(), "train.py"), rules, Project(), every_fix, write=write)
        return len(made.findings)

    found(150)  # what all files share is read now, and what this one has is interned
    # Python's own tables, such as that of interned strings, may happen to grow in one of the runs: by more
    # than all findings take, in a process that has run thousands of tests.
    # What the rules take for a file, whatever is in it, is in both.
    (fewer, lower), (more, higher) = (
        min(_traced(lambda count=count: found(count)) for _ in range(2)) for count in (50, 150)
    )
    assert (fewer, more) == (401, 1201)
    assert (higher - lower) / (more - fewer) < 2400


def _traced(run: Callable[[], int]) -> tuple[int, int]:
    """What a run returns, and the most bytes that it had at once, where garbage goes as Python has it."""
    usual = gc.get_threshold()  # of a command, where one has run in this process
    gc.set_threshold(700, 10, 10)
    tracemalloc.start(1)
    try:
        return run(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        gc.set_threshold(*usual)
