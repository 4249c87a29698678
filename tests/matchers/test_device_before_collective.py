"""A collective of another file, before the rank has chosen its NPU."""

from __future__ import annotations

import pytest

from migrator.project.program import merged, scan_program
from migrator.project.project import Project
from tests.checking import migrate_text
from tests.matchers.migrating import engine

COMM = """\
import torch
from torch import distributed as dist

def synchronize(
    group=None,
):
    if dist.is_initialized():
        dist.barrier()

def choose(rank):
    torch.cuda.set_device(rank)
    dist.barrier()

def get_rank():
    return dist.get_rank()
"""

LAUNCH = """\
import torch
import torch.distributed as dist
{imports}
def worker(local_rank, size, main):
    try:
        dist.init_process_group("nccl", rank=local_rank, world_size=size)
    except RuntimeError:
        raise
    {call}
    assert size > 1
    torch.cuda.set_device(local_rank)
    main()
"""


@pytest.mark.parametrize(
    ("imports", "call", "moves"),
    [
        ("import acme.utils.comm as comm", "comm.synchronize()", True),
        ("from acme.utils import comm", "comm.synchronize()", True),
        ("from acme.utils import synchronize", "synchronize()", True),  # its __init__ may offer it
        ("from .utils.comm import synchronize", "synchronize()", True),
        ("from acme.utils import comm", "comm.get_rank()", False),
        ("from acme.utils import comm", "comm.choose(local_rank)", False),
        ("from other.utils import comm", "comm.synchronize()", False),
        ("", "torch.cuda.synchronize()", False),
    ],
)
def test_the_device_is_chosen_before_it(imports: str, call: str, moves: bool) -> None:
    project = Project(program=merged([scan_program("acme/utils/comm.py", COMM)]))
    before = LAUNCH.format(imports=imports, call=call)
    after = migrate_text(engine("2.6"), "acme/launch.py", before, project).text or ""
    lines = [line.strip() for line in after.splitlines()]
    first = lines.index(call.replace("cuda", "npu"))
    assert (lines.index("torch.npu.set_device(local_rank)") < first) == moves
