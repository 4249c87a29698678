"""Files for CUDA that have one for NPUs beside them are left as they are."""

from __future__ import annotations

import pytest

from migrator.core.rules import Rules
from migrator.core.settings import Settings
from migrator.project.module_names import npu_twins
from migrator.project.project import merge_facts
from tests.checking import migrate_text

TEXT = "import torch\n\ndef current():\n    return torch.cuda.current_device()\n"


@pytest.mark.parametrize(
    ("files", "twins"),
    [
        (["a/cuda_accelerator.py", "a/npu_accelerator.py"], {"a/cuda_accelerator.py"}),
        (["ops/cuda/norm.py", "ops/ascend/norm.py"], {"ops/cuda/norm.py"}),
        (["comm/nccl.py", "comm/hccl.py", "comm/gloo.py"], {"comm/nccl.py"}),
        (["gpu_worker.py", "npu_worker.py"], {"gpu_worker.py"}),
        (["platform_rocm.py", "platform_xpu.py", "platform_npu.py"], {"platform_rocm.py", "platform_xpu.py"}),
        (["comm/rccl.py", "comm/hccl.py", "chip.py", "cnpu.py"], {"comm/rccl.py"}),
        (["a/cuda_accelerator.py", "b/npu_accelerator.py"], set()),
        (["barracuda.py", "barranpu.py"], set()),
    ],
)
def test_twins(files: list[str], twins: set[str]) -> None:
    assert npu_twins(files) == twins


def test_only_the_file_with_a_twin_is_left() -> None:
    rules = Rules(Settings(version="2.6"))
    project = merge_facts((), files=["cuda_device.py", "npu_device.py", "train.py"])
    left = migrate_text(rules, "cuda_device.py", TEXT, project)
    assert left.text is None
    assert [(each.severity, each.fix) for each in left.findings] == [("info", None)]
    assert "a separate file for NPUs" in left.findings[0].message
    changed = migrate_text(rules, "train.py", TEXT, project)
    assert "torch.npu.current_device()" in str(changed.text)
