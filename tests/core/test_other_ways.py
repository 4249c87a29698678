"""Questions that keep an NPU from CUDA operators stay, and what is behind them is less grave."""

from __future__ import annotations

import pytest

from migrator.core.check import check
from migrator.project.operators import Catalog, Module, Operator
from migrator.project.project import Project
from tests.checking import document
from tests.matchers.migrating import engine

FUSED = Module("fused", {"leaky": Operator("bound", "leaky", "fused.cpp", 1)})
PROJECT = Project(operators=Catalog(modules={"fused": FUSED}))
IMPORT = "import fused\n"
TRIED = "try:\n    import fused\nexcept ImportError:\n    fused = None\n"
ASKED = "def f(x):\n    if x.is_cuda:\n        return fused.leaky(x)\n    return x * 2\n"
FOR_MORE = (
    "def f(x):\n    if torch.cuda.is_available():\n        x = x.cuda()\n"
    "        return fused.leaky(x)\n    return x * 2\n"
)
NOT_ASKED = "def f(x):\n    if x.is_cuda:\n        x.cuda()\n    return fused.leaky(x)\n"


@pytest.mark.parametrize(
    ("text", "stays", "severities"),
    [
        (IMPORT + ASKED, True, ["fused blocker", ".is_cuda info", "fused.leaky info"]),
        (TRIED + ASKED, True, ["fused warning", ".is_cuda info", "fused.leaky info"]),
        # one operator is reached all the same, so the import is not made less
        (
            f"{TRIED}{ASKED}def g(x):\n    return fused.leaky(x)\n",
            True,
            ["fused error", ".is_cuda info", "fused.leaky info", "fused.leaky error"],
        ),
        (
            IMPORT + ASKED.replace(".is_cuda", ".device.type == 'cuda'"),
            True,
            ["fused blocker", "cuda info", "fused.leaky info"],
        ),
        # what else is fixed in the file is
        (
            f"{IMPORT}{ASKED}torch.cuda.synchronize()\n",
            False,
            ["fused blocker", ".is_cuda info", "fused.leaky info", "torch.cuda.synchronize error"],
        ),
        # the question also chooses what is moved
        (
            IMPORT + FOR_MORE,
            False,
            ["fused blocker", "torch.cuda.is_available error", ".cuda error", "fused.leaky error"],
        ),
        (IMPORT + NOT_ASKED, False, ["fused blocker", ".is_cuda error", ".cuda error", "fused.leaky error"]),
    ],
)
def test_what_the_other_way_avoids(text: str, stays: bool, severities: list[str]) -> None:
    result = check(document("a.py", f"import torch\n{text}"), engine("2.6"), PROJECT)
    assert (result.text is None) == stays
    found = [item for item in result.findings if item.api != "torch_npu"]
    assert [f"{item.api} {item.severity}" for item in found] == severities
    for item in found:
        reason = "left unchanged: it selects CUDA operators, and NPUs take the other branch"
        assert item.message.endswith(reason) == (item.severity == "info" and item.code != "NPU653")
        assert not item.message.startswith(("None", "{"))
        less = item.code == "NPU653" and item.severity in ("info", "warning")
        assert item.message.endswith("; NPUs take the other branch") == less
