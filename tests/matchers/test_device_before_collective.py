"""A collective of another file, before the rank has chosen its NPU."""

from __future__ import annotations

import pytest

from migrator.project.facts import scan_file
from migrator.project.offers import Offers
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
    project = Project(offers=Offers(scan_file("acme/utils/comm.py", COMM).offers))
    before = LAUNCH.format(imports=imports, call=call)
    after = migrate_text(engine("2.6"), "acme/launch.py", before, project).text or ""
    lines = [line.strip() for line in after.splitlines()]
    first = lines.index(call.replace("cuda", "npu"))
    assert (lines.index("torch.npu.set_device(local_rank)") < first) == moves


ALONE = """\
import torch
import torch.distributed as dist
{imports}
def train(size):
    {join}
    dist.barrier()
    return size
{other}"""
JOINS = 'dist.init_process_group("hccl")'
CHOOSES = "def choose(rank):\n    torch.npu.set_device(rank)\n"
BY_NUMBER = """\
    if torch.npu.is_available():
        torch.npu.set_device(dist.get_rank() % torch.npu.device_count())
"""


@pytest.mark.parametrize(
    ("imports", "join", "other", "wanted"),
    [
        pytest.param("", JOINS, "", BY_NUMBER, id="no device is chosen"),
        pytest.param("", f"{JOINS}  # by torchrun", "", BY_NUMBER, id="a comment stays with its line"),
        pytest.param("", JOINS, CHOOSES, "", id="another function may have chosen"),
        pytest.param("", f"group = {JOINS}", "", "", id="no statement by itself"),
        pytest.param("", f"if size: {JOINS}", "", "", id="not alone on its line"),
        pytest.param(
            "from torch.distributed import init_process_group",
            'init_process_group("hccl")',
            "",
            "",
            id="by its bare name",
        ),
    ],
)
def test_each_rank_takes_the_npu_of_its_number(imports: str, join: str, other: str, wanted: str) -> None:
    text = ALONE.format(imports=imports, join=join, other=other)
    result = migrate_text(engine("2.13"), "train.py", text, Project())
    at = text.index("    dist.barrier()")
    migrated = text if result.text is None else result.text
    assert migrated.replace("import torch_npu\n", "") == text[:at] + wanted + text[at:]
    assert "NPU209" in {each.code for each in result.findings}
    again = migrate_text(engine("2.13"), "train.py", migrated, Project())
    assert again.text in (None, migrated)


JOINED = """\
import torch
import torch.distributed as dist

def setup(backend="{backend}"):
    dist.init_process_group(backend)
{more}"""
TRAINS = """\
from torch import distributed as dist

def train(loader):
    dist.barrier()
"""


@pytest.mark.parametrize(
    ("backend", "more", "other", "chosen"),
    [
        pytest.param("nccl", "", TRAINS, True, id="another file waits"),
        pytest.param("nccl", "", "", False, id="no file waits"),
        pytest.param("gloo", "", TRAINS, False, id="a program for the CPU"),
        pytest.param("nccl", "", f"{TRAINS}    torch.npu.set_device(0)\n", False, id="another file chooses"),
        pytest.param(
            "nccl", "", f"{TRAINS}    with torch.cuda.device(0):\n        pass\n", False, id="as a context"
        ),
        pytest.param("nccl", CHOOSES, TRAINS, False, id="another function chooses"),
        pytest.param("nccl", "", "import threading\nthreading.barrier()\n", False, id="no collective"),
    ],
)
def test_a_program_that_waits_and_chooses_no_device(
    backend: str, more: str, other: str, chosen: bool
) -> None:
    text = JOINED.format(backend=backend, more=more)
    offers = Offers.of_all([scan_file("comm.py", text).offers, scan_file("train.py", other).offers])
    result = migrate_text(engine("2.13"), "comm.py", text, Project(offers=offers))
    migrated = text if result.text is None else result.text
    assert (BY_NUMBER in migrated) == chosen
    assert ("NPU209" in {each.code for each in result.findings}) == chosen
