"""Statements with collectives, each in the words of the command line; rank 0 prints what comes of each."""

import json
import os
import sys
import traceback

import torch
import torch.distributed as dist
from torch.distributed import ReduceOp  # noqa: F401 (statements name it)

rank = int(os.environ["RANK"])
torch.npu.set_device(rank)
dist.init_process_group("hccl")
for statement in sys.argv[1:]:
    text = ""
    try:
        exec(compile(statement, "train.py", "exec"))
    except Exception:
        text = traceback.format_exc()
    if rank == 0:
        print(json.dumps([statement, text]))
dist.destroy_process_group()
