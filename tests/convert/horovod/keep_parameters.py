"""Runs a program, and keeps what the parameters that it broadcasts become: program, folder, arguments."""

import os
import runpy
import sys
from pathlib import Path

import torch

program, folder = sys.argv[1:3]
sys.path.insert(0, str(Path(program).parent))

import ascend_horovod  # noqa: E402

kept = {}
plain = ascend_horovod.broadcast_parameters


def broadcast_parameters(params, *args, **kwargs):
    kept.update(params)
    return plain(params, *args, **kwargs)


ascend_horovod.broadcast_parameters = broadcast_parameters
sys.argv = [program, *sys.argv[3:]]
runpy.run_path(program, run_name="__main__")
assert kept
assert all(value.device.type == "npu" for value in kept.values())
state = {name: value.cpu() for name, value in kept.items()}
torch.save(state, Path(folder, f"rank-{os.environ['RANK']}.pt"))
