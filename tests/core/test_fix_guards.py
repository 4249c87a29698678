"""Fixes that would do harm where they are, and those that are written to fit there."""

from __future__ import annotations

import sys

import pytest

from migrator.project.project import Project
from tests.checking import migrate_text
from tests.matchers.migrating import engine, migrated


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
    reason = f"it is passed to {taker}, which is for CUDA"
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
    result = migrate_text(engine("2.6"), "a.py", text, Project())
    left = [item for item in result.findings if "left unchanged" in item.message]
    assert [(item.message.partition("left unchanged: ")[2], item.severity, item.fix) for item in left] == [
        (reason, "info", None)
    ] * bool(reason)
    assert (result.text is None) == bool(reason)


def test_a_file_with_one_for_npus_beside_it_is_left() -> None:
    text = "import torch\ntorch.cuda.synchronize()\n"
    result = migrate_text(engine("2.6"), "a.py", text, Project(twins=frozenset({"a.py"})))
    (found,) = result.findings
    assert (result.text, found.fix) == (None, None)
    assert found.message.endswith("; left unchanged: the project has a separate file for NPUs")
    assert migrate_text(engine("2.6"), "b.py", text, Project(twins=frozenset({"a.py"}))).text
