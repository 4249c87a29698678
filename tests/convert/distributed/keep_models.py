"""Runs a program, and keeps what each rank's wrapped model has become: program, folder, arguments."""

import os
import runpy
import sys
from pathlib import Path

import torch
from torch.nn.parallel import DistributedDataParallel

program, folder = sys.argv[1:3]
wrapped = []
plain_init = DistributedDataParallel.__init__


def init(self, *args, **kwargs):
    plain_init(self, *args, **kwargs)
    wrapped.append(self)


DistributedDataParallel.__init__ = init
sys.argv = [program, *sys.argv[3:]]
sys.path.insert(0, str(Path(program).parent))
runpy.run_path(program, run_name="__main__")
assert wrapped
assert all(value.device.type == "npu" for model in wrapped for value in model.parameters())
state = {}
for number, model in enumerate(wrapped):
    prefix = f"{number}." if number else ""
    state.update({prefix + name: value.cpu() for name, value in model.module.state_dict().items()})
torch.save(state, Path(folder, f"rank-{os.environ['RANK']}.pt"))
