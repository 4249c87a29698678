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
