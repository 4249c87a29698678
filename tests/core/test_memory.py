"""What a finding takes of memory while its file is checked: a file of 11 MB may have 380,000 of them."""

from __future__ import annotations

import tracemalloc

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


@pytest.mark.parametrize("write", [False, True], ids=["found", "fixed"])
def test_bytes_of_a_finding(write: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (tree, readable):
        monkeypatch.setattr(module, "LARGE", 1000)
    monkeypatch.setattr(large, "_PIECE", 1000)
    monkeypatch.setattr(index, "_MOST_NAMES", 100)
    rules = rules_for(Settings(version="2.6"))

    def found(count: int) -> int:
        text = "import torch\n" + "".join(FUNCTION.format(number=number) for number in range(count))
        made = check(document(text.encode(), "train.py"), rules, Project(), every_fix, write=write)
        return len(made.findings)

    found(150)  # what all files share is read now, and what this one has is interned
    tracemalloc.start(1)
    try:
        count = found(150)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 1201
    assert peak / count < 2450
