"""The boot file for ModelArts with the real torch_npu: groups over the variables that it sets."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.cli.main import run
from tests.emulator.conftest import free_port, migrated

PROGRAM = """\
import argparse
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser()
parser.add_argument("--data")
parser.add_argument("--out")
args = parser.parse_args()
local = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local)
dist.init_process_group("nccl")
dist.new_group(backend="gloo")
model = DistributedDataParallel(torch.nn.Linear(4, 1).cuda(), device_ids=[local])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.load(args.data).cuda() + dist.get_rank()).sum().backward()
optimizer.step()
total = torch.full((1,), float(dist.get_rank() + 1)).cuda()
dist.all_reduce(total)
sys.stdout.write(f"rank {dist.get_rank()} on {total.device}: {total.item():.0f}\\n")
if dist.get_rank() == 0:
    os.makedirs(args.out)
    torch.save(model.module.state_dict(), f"{args.out}/model.pt")
dist.destroy_process_group()
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A migrated project with its boot file; data and outputs are copied between folders."""
    folder = migrated(tmp_path, {"train.py": PROGRAM})
    local = tmp_path / "local"
    paths = ["--map", f"{tmp_path}/data.pt={local}/data.pt", "--output", f"{local}/out=file://{tmp_path}/out"]
    assert run(["launch", "modelarts", "-o", str(folder), *paths]) == 0
    return folder


def start(emulate, project: Path, line: str, **env: str):
    """Run a line of bash in which "$@" is the boot file, and check what came of it."""
    parent = project.parent
    env |= {"PORT": str(free_port()), "TMPDIR": str(parent)}
    data = f"import torch; torch.save(torch.ones(2, 4), '{parent}/data.pt')"
    boot = ["python", str(project / "modelarts_boot.py")]
    arguments = f'"$@" --data {parent}/local/data.pt --out {parent}/local/out'
    done = emulate(
        "bash", "-c", f'python -c "{data}"\n' + line.replace('"$@"', arguments), "bash", *boot,
        options=("--devices", "2"), env=env, cwd=parent,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert (parent / "out" / "model.pt").is_file()
    assert done.stderr.count("data.pt copied to") == done.stderr.count("out copied to") == 1
    return done


@pytest.mark.parametrize("form", ["current", pytest.param("older", marks=pytest.mark.thorough)])
def test_once_for_each_card(emulate, project, tmp_path, form):
    table = str(tmp_path / "table.json")
    assert run(["launch", "rank-table", "--hosts", "127.0.0.1:2", "-o", table, "--format", form]) == 0
    line = """export MASTER_PORT=$PORT
    ASCEND_DEVICE_ID=1 RANK_ID=1 "$@" &
    ASCEND_DEVICE_ID=0 RANK_ID=0 "$@"
    code=$?; wait $! && exit $code"""
    done = start(emulate, project, line, RANK_SIZE="2", RANK_TABLE_FILE=table)
    assert sorted(done.stdout.splitlines()) == [f"rank {rank} on npu:{rank}: 3" for rank in (0, 1)]


@pytest.mark.thorough
def test_once_on_the_node(emulate, project):
    done = start(emulate, project, '"$@" --init_method tcp://127.0.0.1:$PORT', NPROC_PER_NODE="2")
    assert sorted(done.stdout.splitlines()) == [f"rank {rank} on npu:{rank}: 3" for rank in (0, 1)]


@pytest.mark.thorough
def test_by_torchrun(emulate, project):
    done = start(emulate, project, 'shift; torchrun --nproc_per_node=2 --master_port=$PORT "$@"')
    assert sorted(done.stdout.splitlines()) == [f"rank {rank} on npu:{rank}: 3" for rank in (0, 1)]
