"""torch_npu's own profiler on emulated NPUs, and what npumigrate says of the files that it writes."""

from __future__ import annotations

import csv
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from migrator.profile.read import read_profile
from tests.emulator.conftest import free_port

PROGRAM = """
import torch, torch_npu
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 8)).npu()
optimizer = torch.optim.AdamW(net.parameters())
data = DataLoader(TensorDataset(torch.randn(40, 64)), batch_size=8)
p = torch_npu.profiler
with p.profile(
    activities=[p.ProfilerActivity.CPU, p.ProfilerActivity.NPU],
    schedule=p.schedule(wait=1, warmup=1, active=2, repeat=1),
    on_trace_ready=p.tensorboard_trace_handler("./prof"),
    record_shapes=True, profile_memory=True, with_stack=True, with_modules=True,
    experimental_config=p._ExperimentalConfig(LEVEL),
) as profile:
    for (x,) in data:
        loss = net(x.npu()).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        profile.step()
"""
RANKS = """
import os, torch, torch_npu
import torch.distributed as dist

dist.init_process_group("hccl")
torch.npu.set_device(int(os.environ["LOCAL_RANK"]))
value = torch.ones(1000).npu()
p = torch_npu.profiler
with p.profile(
    schedule=p.schedule(wait=0, warmup=1, active=2, repeat=1),
    on_trace_ready=p.tensorboard_trace_handler("./prof"),
) as profile:
    for _ in range(3):
        dist.all_reduce(value.mul_(2))
        profile.step()
dist.destroy_process_group()
"""


def head(file: Path) -> list[str]:
    with file.open(newline="") as read:
        return next(csv.reader(read))


def test_the_profiler_gives_its_files_and_they_are_read(emulate, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM.replace("LEVEL", "profiler_level=p.ProfilerLevel.Level1"))
    done = emulate("python", "train.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "run failed" not in done.stdout
    assert done.stderr.count("profiles have the CPU's times: there is no NPU") == 1
    (output,) = tmp_path.glob("prof/*_ascend_pt/ASCEND_PROFILER_OUTPUT")
    tables = {"kernel_details", "op_statistic", "operator_details", "step_trace_time"}
    assert {f"{name}.csv" for name in tables | {"memory_record", "operator_memory"}} <= {
        file.name for file in output.iterdir()
    }
    assert head(output / "kernel_details.csv")[:2] == ["Step Id", "Device_id"]
    trace = json.loads((output / "trace_view.json").read_text())
    names = {event["args"]["name"] for event in trace if event["name"] == "process_name"}
    assert "Ascend Hardware (emulated: the times are the CPU's)" in names

    profile = read_profile(tmp_path / "prof")
    assert (profile.emulated, profile.steps, profile.notes) == (True, 2, [])
    assert profile.kernels["addmm EMULATED_ON_CPU"].calls == 2
    assert profile.operators["aten::addmm"].device == pytest.approx(
        profile.kernels["addmm EMULATED_ON_CPU"].device
    )
    assert profile.operators["aten::addmm"].place.endswith("train.py:18 <module>")
    assert sum(profile.parts.values()) == pytest.approx(profile.step)
    assert all(profile.parts[part] > 0 for part in ("compute", "data", "host"))
    assert profile.memory[0].holders


def test_a_database_has_the_kernels(emulate, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM.replace("LEVEL", "export_type=[p.ExportType.Db]"))
    done = emulate("python", "train.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (file,) = tmp_path.glob("prof/*_ascend_pt/ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler*.db")
    asked = (
        "SELECT count(*) FROM COMPUTE_TASK_INFO JOIN TASK USING (globalTaskId) "
        "JOIN STRING_IDS s ON s.id = opType WHERE s.value = 'addmm'"
    )
    with closing(sqlite3.connect(file)) as base:
        assert base.execute(asked).fetchone() == (4,)
        assert base.execute("SELECT count(*) FROM STEP_TIME").fetchone() == (2,)
        assert base.execute("SELECT max(totalReserved) FROM MEMORY_RECORD").fetchone() > (0,)


def test_collectives_of_ranks_are_their_communication(emulate, tmp_path: Path) -> None:
    (tmp_path / "ranks.py").write_text(RANKS)
    ranks = ("torchrun", "--nproc_per_node=2", f"--master_port={free_port()}")
    done = emulate(*ranks, "ranks.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    profile = read_profile(tmp_path / "prof")
    assert profile.communication > 0
    assert profile.notes[-1].startswith("2 ranks: this one computes longest")
