"""Mode transfer: what torch_npu's patching does is not spoken of, what it does not do is reported."""

from __future__ import annotations

import pytest

from tests.matchers.migrating import migrate

DONE = [
    "x = torch.ones(1, device='cuda')",
    "x = torch.ones(1).cuda().is_cuda",
    "torch.cuda.synchronize()",
    "from torch.cuda.amp import GradScaler",
    "torch.distributed.init_process_group('nccl')",
    "scope = torch.autocast('cuda')",
]
LEFT = {
    "x = t.device.type == 'cuda'": "NPU121",
    "x = str(t.device).startswith('cuda')": "NPU121",
    "torch._C._cuda_getDeviceCount()": "NPU155",
    "torch.set_default_tensor_type('torch.cuda.FloatTensor')": "NPU151",
    "x = t.type('torch.cuda.FloatTensor')": "NPU115",
    "x = os.environ['CUDA_VISIBLE_DEVICES']": "NPU401",
    "import apex": "NPU601",
}


@pytest.mark.parametrize("text", DONE)
def test_what_the_patching_does(text):
    assert [f.code for f in migrate(f"import torch\n{text}\n", transfer=True).findings] == []


@pytest.mark.parametrize(("text", "code"), LEFT.items())
def test_what_it_leaves(text, code):
    result = migrate(f"import os\nimport torch\n{text}\n", transfer=True)
    assert result.text is None
    assert [f.code for f in result.findings] == [code]
    assert all(f.fix is None for f in result.findings)


MAIN = "if __name__ == '__main__':\n    main()\n"
ONE, TWO = "import torch_npu", "from torch_npu.contrib import transfer_to_npu"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"import torch\n{MAIN}", f"import torch\n{ONE}\n{TWO}\n{MAIN}"),
        (f"{MAIN}import torch", f"{MAIN}import torch\n{ONE}\n{TWO}"),
        (f"import torch; x = 1\n{MAIN}", f"import torch; {ONE}; {TWO}; x = 1\n{MAIN}"),
        (f"x = 1; import torch\n{MAIN}", f"x = 1; import torch; {ONE}; {TWO}\n{MAIN}"),
        (
            f"try:\n\timport torch\nexcept ImportError:\n\tpass\n{MAIN}",
            f"try:\n\timport torch\n\t{ONE}\n\t{TWO}\nexcept ImportError:\n\tpass\n{MAIN}",
        ),
        # torch_npu is imported already
        (f"import torch\nimport torch_npu\n{MAIN}", f"import torch\n{ONE}\n{TWO}\n{MAIN}"),
        (f"import torch\n{ONE}\n{TWO}\n{MAIN}", None),
        # it is not started, or not with torch
        ("import torch\n", None),
        (f"import numpy\n{MAIN}", None),
    ],
)
def test_where_the_two_imports_go(before: str, after: str | None) -> None:
    assert migrate(before, transfer=True).text == after
    windows = after.replace("\n", "\r\n") if after else None
    assert migrate(before.replace("\n", "\r\n"), transfer=True).text == windows


@pytest.mark.parametrize(("version", "above"), [("1.11", True), ("2.6", False)])
def test_where_torch_npu_replaces_names_it_is_imported_above_them(version: str, above: bool) -> None:
    own, names = f"{ONE}\n{TWO}\n", "from torch import nn\n"
    result = migrate(names + MAIN, version, transfer=True)
    assert result.text == (own + names if above else names + own) + MAIN
    beside = migrate(f"x = 1; {names}{MAIN}", version, transfer=True).text
    expected = f"x = 1; {ONE}; {TWO}; {names}" if above else f"x = 1; {names.strip()}; {ONE}; {TWO}\n"
    assert beside == expected + MAIN


@pytest.mark.parametrize(
    ("line", "count", "advice"),
    [
        ("x = str(t.device).endswith('cuda')", 1, "Change it by hand, or migrate with --mode rewrite."),
        (
            "x = t.type in (('cuda', a), ['cuda'], 'cuda')",
            3,
            "Change it by hand, or migrate with --mode rewrite.",
        ),
        ("torch.set_default_tensor_type('torch.cuda.FloatTensor')", 1, "Use torch.set_default_device("),
    ],
)
def test_what_it_leaves_says_so_and_what_to_do(line: str, count: int, advice: str) -> None:
    found = migrate(f"import torch\n{line}\n", transfer=True).findings
    before = {item.code: item.message for item in migrate(f"import torch\n{line}\n").findings}
    assert len(found) == count
    for item in found:
        assert item.message == f"{before[item.code]}; transfer_to_npu does not do that"
        assert item.advice.startswith(advice)
