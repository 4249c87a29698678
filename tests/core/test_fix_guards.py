"""Fixes that would do harm where they are, and those that are written to fit there."""

from __future__ import annotations

import ast
import sys

import pytest

from migrator.core.check import check
from migrator.core.fix_guards import judged
from migrator.findings.finding import Finding
from migrator.matchers.context import Match
from migrator.names.index import ModuleIndex
from migrator.project.operators import Catalog, Module, Operator
from migrator.project.project import Project
from tests.checking import document, migrate_text
from tests.matchers.migrating import engine, migrate, migrated


@pytest.mark.parametrize(
    ("text", "packages", "taker"),
    [
        ("import cupy\ncupy.cuda.ExternalStream(HERE)", (), "cupy.cuda.ExternalStream"),
        ("from numba import cuda\nshow(cuda.external_stream(1, HERE + 1))", (), "numba.cuda.external_stream"),
        ("import cuda.tile as ct\nct.launch(HERE, (1,))", (), "cuda.tile.launch"),
        ("import cuda.tile as ct\nct.launch(HERE, (1,))", ("cuda",), ""),  # the project's own
        ("import cupy\ncupy.cuda.run(lambda: HERE)", (), ""),  # it is not handed to it
        ("import numpy\nnumpy.array(HERE)", (), ""),
    ],
)
def test_what_a_cuda_library_takes_is_left(text: str, packages: tuple[str, ...], taker: str) -> None:
    here = "torch.cuda.current_stream()"
    text = f"import torch\n{text}\n".replace("HERE", here)
    result = migrate_text(engine("2.6"), "a.py", text, Project(packages=frozenset(packages)))
    assert (here in (result.text or text)) == bool(taker)
    told = [item.message for item in result.findings if "left unchanged" in item.message]
    advice = "use torch.npu.current_stream instead of torch.cuda.current_stream"
    reason = f"it is passed to {taker}, which supports CUDA only"
    assert told == [f"{advice}; left unchanged: {reason}"] * bool(taker)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("""f"{CALL()}" """, """f"{CALL('npu')}" """),
        ("""rf"{CALL()}" """, """rf"{CALL('npu')}" """),
        ('''f"""{CALL()}""" ''', '''f"""{CALL('npu')}""" '''),
        ("""f'{CALL()}' """, """f'{CALL("npu")}' """),
        ("""f"{x or [CALL()]}" """, """f"{x or [CALL('npu')]}" """),
        ("""f"{f'''{CALL()}'''}" """, """f"{f'''{CALL('npu')}'''}" """),
        # both quotes are taken: only from Python 3.12 on may they stand inside once more
        ("""f"{f'{CALL()}'}" """, """f"{f'{CALL('npu')}'}" """ if sys.version_info >= (3, 12) else None),
        ("""f"{x}", CALL() """, """f"{x}", CALL("npu") """),
    ],
)
def test_quotes_fit_the_string_around_them(before: str, after: str | None) -> None:
    call = "torch.is_autocast_enabled"
    text = f"import torch\nx = 1\ny = {before}\n".replace("CALL", call)
    if after is None:
        assert call + "()" in migrated(text)
    else:
        assert after.replace("CALL", call) in migrated(text)


BRANCH = (
    "import torch\nimport torch_npu\nif torch.npu.is_available():\n    x = x.npu()\nelse:\n    x = x.cuda()\n"
)
CHOICE = "import torch\nm = torch.nn.DataParallel(m, device_ids=ids[:1] if is_npu else ids)\n"
BUILD = "import torch\nfrom torch.utils.cpp_extension import CUDAExtension\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (BRANCH, "the code already has a branch for NPUs"),
        (BRANCH.replace("npu", "xpu").replace("torch_xpu", "os"), ""),
        ("import torch\ntorch.cuda.Event = torch.npu.Event\n", "the code already has a branch for NPUs"),
        ("import torch\ntorch.cuda.Event = torch.xpu.Event\n", ""),
        (CHOICE, "the code already has a branch for NPUs"),
        (CHOICE.replace("npu", "xpu"), ""),
        (
            "import torch\nis_nvidia = torch.device(d).type == 'cuda'\n",
            "the name of the result refers to NVIDIA GPUs",
        ),
        ("import torch\nis_fast = torch.device(d).type == 'cuda'\n", ""),
        (
            f"{BUILD}if torch.cuda.is_available():\n    e = [CUDAExtension('a', ['a.cu'])]\n",
            "it decides whether CUDA sources are compiled",
        ),
        (f"{BUILD}if torch.cuda.is_available():\n    e = []\n", ""),
    ],
)
def test_why_a_fix_is_not_made(text: str, reason: str) -> None:
    result = migrate_text(engine("1.11"), "a.py", text, Project())
    left = [item for item in result.findings if "left unchanged" in item.message]
    assert [(item.message.partition("left unchanged: ")[2], item.severity, item.fix) for item in left] == [
        (reason, "info", None)
    ] * bool(reason)
    assert (result.text is None) == bool(reason)


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        ("HERE", "blocker"),
        ("def f():\n    HERE", "error"),
        ("try:\n    HERE\nexcept RuntimeError:\n    pass", "warning"),
        ("try:\n    HERE\nexcept Exception:\n    pass", "warning"),
        ("try:\n    HERE\nexcept Exception:\n    raise", "blocker"),
        ("try:\n    HERE\nexcept KeyError:\n    pass", "error"),
        ("def f():\n    with suppress(OSError):\n        HERE", "warning"),
        ("try:\n    def f():\n        HERE\nexcept RuntimeError:\n    pass", "error"),
    ],
)
def test_the_place_decides(text: str, severity: str) -> None:
    call = "subprocess.run(['nvidia-smi'])"
    (finding,) = migrate("import subprocess\n" + text.replace("HERE", call) + "\n").findings
    assert (finding.code, finding.severity) == ("NPU600", severity)


def test_an_import_that_the_rule_has_judged_is_no_less_where_something_is_caught() -> None:
    tree = "def f():\n    try:\n        import a\n        b()\n    except OSError:\n        pass\n"
    index = ModuleIndex(tree, ("a", "b"))
    nodes = [node for node in ast.walk(index.tree) if isinstance(node, (ast.Import, ast.Call))]
    finding = Finding("NPU600", "m", 1, 1, 1, 1, severity="blocker")
    found = judged(index, [Match(finding, node, False) for node in nodes])
    assert {type(item.node): item.finding.severity for item in found} == {
        ast.Import: "error",
        ast.Call: "warning",
    }


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
