"""Code that has a case for NPUs beside the one for CUDA."""

from __future__ import annotations

import ast

import pytest

from migrator.names.conditions import beside_npu, has_npu_branch, is_flag_for_nvidia, knows_npus, patches_cuda
from migrator.names.index import ModuleIndex


def cuda(text: str) -> tuple[ModuleIndex, ast.AST]:
    """The first ``torch.cuda…`` or ``"cuda"`` of a text that stands in a line with ``# here``."""
    index = ModuleIndex(f"import torch\n{text}\n", {"cuda"})
    line = next(number for number, each in enumerate(index.text.splitlines(), 1) if "# here" in each)
    nodes = [node for node in (*index.refs, *index.strings) if node.lineno == line]
    return index, next(node for node in nodes if "cuda" in index.segment(node))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("input output num_npus", False),
        ("npu", True),
        ("use_npu", True),
        ("torch_npu", True),
        ("Ascend 910", True),
        ("HCCL", True),
        ("input", False),
        ("npus", False),
    ],
)
def test_texts_that_speak_of_npus(text: str, expected: bool) -> None:
    assert knows_npus(text) is expected


@pytest.mark.parametrize(
    "text",
    [
        "if npu:\n    f()\nelse:\n    torch.cuda.init()  # here",
        "if npu:\n    f()\nelif x:\n    torch.cuda.init()  # here",
        "if torch.cuda.is_available():  # here\n    f()\nelif is_npu():\n    g()",
        "if x:\n    torch.cuda.init()  # here\nelif y:\n    f()\nelif kind == 'npu':\n    g()",
        "x = torch.npu if npu else torch.cuda  # here",
        "def f():\n    if npu:\n        return 1\n    torch.cuda.init()  # here",
        "for x in y:\n    if npu:\n        continue\n    torch.cuda.init()  # here",
        "if has_cuda:\n    torch.cuda.init()  # here\nif has_npu:\n    torch.npu.init()",
        "if has_cuda:\n    torch.cuda.init()  # here\nif has_npu:\n    torch.npu.empty_cache()",
        "a = kind == 'cuda'  # here\nb = kind == 'npu'",
        "def f():\n    if npu:\n        return 1\n    if x:\n        f(torch.cuda)  # here",
    ],
)
def test_a_branch_for_npus(text: str) -> None:
    assert has_npu_branch(*cuda(text))


@pytest.mark.parametrize(
    "text",
    [
        "torch.cuda.init()  # here",
        "if x:\n    torch.cuda.init()  # here\nelse:\n    f()",
        "if npu:\n    torch.cuda.init()  # here",
        "def f():\n    if npu:\n        raise Error\n    torch.cuda.init()  # here",
        "def f():\n    torch.cuda.init()  # here\n    if npu:\n        return 1",
        "x = torch.cuda if cuda else torch.npu  # here",
        "a = kind == 'cuda'  # here\nb = sort == 'npu'",
        "if npu:\n    def f(): return 1\nelse:\n    def f():\n        torch.cuda.init()  # here",
    ],
)
def test_no_branch_for_npus(text: str) -> None:
    assert not has_npu_branch(*cuda(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = ['cuda', 'npu']  # here", True),
        ("x = ('cuda', 'NPU:0')  # here", True),
        ("x = {'cuda': 1, 'npu': 2}  # here", True),
        ("x = {'cuda': 'cuda', 'npu': 2}  # here", True),
        ("class A:\n    CUDA = 'cuda'  # here\n    NPU = 'npu'", True),
        ("x = ['cuda', 'cpu']  # here", False),
        ("x = {'a': 'cuda', 'npu': 2}  # here", False),
        ("CUDA = 'cuda'  # here\nNPU = 'npu'", True),
    ],
)
def test_beside_a_case_for_npus(text: str, expected: bool) -> None:
    assert beside_npu(*cuda(text)) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("torch.cuda.graph = torch.npu.graph  # here", True), ("graph = torch.cuda.graph  # here", False)],
)
def test_patches(text: str, expected: bool) -> None:
    assert patches_cuda(*cuda(text)) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("IS_NVIDIA = platform == 'cuda'  # here", True),
        ("IS_NVIDIA = x and platform == 'cuda'  # here", True),
        ("def is_hopper():\n    return platform == 'cuda'  # here", True),
        ("IS_GPU = platform == 'cuda'  # here", False),
        ("NVIDIA = 'cuda'  # here", False),
    ],
)
def test_flags_for_nvidia(text: str, expected: bool) -> None:
    assert is_flag_for_nvidia(*cuda(text)) is expected
