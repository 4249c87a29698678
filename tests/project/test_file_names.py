"""Which imports mean a package of the project itself."""

from __future__ import annotations

import pytest

from migrator.core.rules import Rules
from migrator.core.settings import Settings
from migrator.project.module_names import npu_twins, packages_of
from migrator.project.project import Project, merge_facts
from tests.checking import load_pack, migrate_text

FILES = (
    "apex/__init__.py",
    "apex/amp/__init__.py",
    "triton/kernels.py",
    "src/cupy/fft.py",
    "train.py",
    "a/b.txt",
)


def test_packages() -> None:
    assert packages_of(FILES) == {
        *("apex", "triton/kernels", "src/cupy/fft", "train"),
        "apex/amp/__init__.py",  # of an inner package
    }


@pytest.mark.parametrize(
    ("name", "file", "expected"),
    [
        ("apex", "train.py", True),
        ("apex.amp", "tools/x.py", True),
        ("triton.kernels", "train.py", True),
        ("triton.kernels.matmul", "tools/deep/x.py", True),
        ("triton", "train.py", False),  # a folder of scripts does not take the place of a library
        ("triton.language", "train.py", False),
        ("cupy.fft", "train.py", True),
        ("cupy.linalg", "train.py", False),
        ("train.model", "tools/x.py", True),
        ("amp.scaler", "apex/tests/x.py", False),
        ("amp", "apex/tests/x.py", False),
    ],
)
def test_owns(name: str, file: str, expected: bool) -> None:
    assert Project(packages=packages_of(FILES)).owns(name, file) is expected


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
        (["ops/hpu/a.py", "ops/npu/b.py", "ops/c.py"], {"ops/hpu/a.py"}),
    ],
)
def test_twins(files: list[str], twins: set[str]) -> None:
    assert npu_twins(files) == twins


def test_only_the_file_with_a_twin_is_left() -> None:
    rules = Rules(Settings(version="2.6"), load_pack)
    project = merge_facts((), files=["cuda_device.py", "npu_device.py", "train.py"])
    left = migrate_text(rules, "cuda_device.py", TEXT, project)
    assert left.text is None
    assert [(each.severity, each.fix) for each in left.findings] == [("info", None)]
    assert "a separate file for NPUs" in left.findings[0].message
    changed = migrate_text(rules, "train.py", TEXT, project)
    assert "torch.npu.current_device()" in str(changed.text)
