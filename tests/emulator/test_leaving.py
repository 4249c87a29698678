"""A CUDA program on Gloo comes to its end, with its exit code, where Gloo's threads are late."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from migrator.emulator.launch import BOOTSTRAP
from tests.slow_gloo import RunSlowly, slow_gloo

__all__ = ["slow_gloo"]
PROGRAM = """
import os, sys
import torch, torch.distributed as dist
import torch.distributed.nn.functional  # as torchvision does
from torch.nn.parallel import DistributedDataParallel

def main():
    dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)
    model = DistributedDataParallel(torch.nn.Linear(4, 4))
    dist.all_reduce(torch.ones(3))
    dist.destroy_process_group()

main()
print("end")
"""


@pytest.mark.parametrize(("last", "code"), [("", 0), ("exit(3)", 3)])
def test_it_ends(slow_gloo: RunSlowly, tmp_path: Path, last: str, code: int) -> None:
    (tmp_path / "train.py").write_text(PROGRAM + last)
    env = {
        "PYTHONPATH": str(BOOTSTRAP),
        "NPUMIGRATE_EMULATOR_STAND_IN": "cuda",
        "NPUMIGRATE_EMULATOR_DEVICES": "1",
        "NPUMIGRATE_EMULATOR_SOC": "Ascend910B2",
    }
    done = slow_gloo("train.py", cwd=tmp_path, env=env)
    assert (done.returncode, done.stdout) == (code, "end\n"), done.stderr


def test_where_cuda_is_the_cpu_there_is_no_torch_npu(tmp_path: Path) -> None:
    """Libraries that find it take the devices for NPUs, and fail: it needs NPUs, emulated or not."""
    for name in ("torch_npu", "another"):
        (tmp_path / f"{name}.py").write_text("")
    program = "import importlib.util as u; print(*(u.find_spec(n) is None for n in ('torch_npu', 'another')))"
    found = []
    for env in ({}, {"NPUMIGRATE_EMULATOR_STAND_IN": "cuda"}):
        env = {"PYTHONPATH": os.pathsep.join([str(BOOTSTRAP), str(tmp_path)]), **env}
        done = subprocess.run(
            [sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True
        )
        found.append(done.stdout.split())
    assert found == [["False", "False"], ["True", "False"]]
