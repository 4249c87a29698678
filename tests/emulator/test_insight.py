"""`npumigrate verify --insight`: a planted problem of each kind is found at its line, a clean twin is not."""

from __future__ import annotations

import csv
import json
import re

import pytest

from tests.emulator.test_distributed import torchrun

# A program that trains; what is planted comes in the places of the marks.
TRAIN = """
import torch
import torch_npu
from torch import nn

torch.manual_seed(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(16, 32)
        self.last = nn.Linear(32, 1)

    def forward(self, x):
        h = torch.relu(self.first(x))
        #FORWARD
        return self.last(h)


net = Net().to("npu")
optimizer = torch.optim.SGD(net.parameters(), 0.01)
for step in range(4):
    x = torch.randn(8, 16).pin_memory().to("npu", non_blocking=True)
    #DATA
    loss = net(x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    #STEP
"""
# By kind: what is planted, a twin without the problem, and what the row says.
PLANTED = {
    "cpu_fallback": (
        "FORWARD",
        "h = torch.logcumsumexp(h, 1)",
        "h = torch.cumsum(h, 1)",
        r"torch\.logcumsumexp has no NPU kernel in torch_npu 2\.13\.0: .*3 times a step.* \(24 copies",
    ),
    "limits": (
        "DATA",
        "best = torch.topk(x, 2, sorted=False)",
        "best = torch.topk(x, 2)",
        r"torch\.topk is called with sorted=False, an argument that the documents of torch_npu .* limit",
    ),
    "dynamic_shape": (
        "DATA",
        "x = x[: 8 - step] * 2",
        "x = x[:8] * 2",
        r"torch\.mul met new shapes in 3 of 3 later steps .*computed or sliced",
    ),
    "host_sync": (
        "STEP",
        "print(loss.item())",
        "print(step)",
        r"a number is read from the NPU \(once a step\)",
    ),
    "fused": (
        "FORWARD",
        "h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)",
        "h = nn.functional.layer_norm(h, h.shape[-1:])",
        r"npu_rms_norm computes this .*of the bytes",
    ),
}


@pytest.fixture
def insight(emulate, tmp_path):
    """Runs a program: the rows of the table, the JSON, the line of what was planted, the process."""

    def run(text: str, planted: str, *options: str, command=("python", "train.py")):
        (tmp_path / "train.py").write_text(text)
        done = emulate(*command, options=(str(tmp_path), "--insight", *options), how="verify")
        folder = tmp_path / "npu_insight"
        with (folder / "npu_insight.csv").open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
        line = next((i for i, each in enumerate(text.splitlines(), 1) if planted in each), 0)
        return rows, json.loads((folder / "npu_insight.json").read_text()), line, done

    return run


def with_planted(mark: str, line: str) -> str:
    return TRAIN.replace(f"#{mark}", line)


@pytest.mark.parametrize("kind", sorted(PLANTED))
def test_a_planted_problem_is_found_at_its_line(insight, kind):
    mark, planted, _, said = PLANTED[kind]
    rows, data, line, done = insight(with_planted(mark, planted), planted)
    assert done.returncode == 0, done.stderr[-2000:]
    found = [row for row in rows if row["Kind"] == kind]
    assert [(row["File"], row["Start Line"]) for row in found] == [("train.py", str(line))], rows
    assert re.search(said, found[0]["Message"]), found[0]["Message"]
    assert found[0]["Function"] == ("Net.forward" if mark == "FORWARD" else "<module>")
    assert f"train.py:{line}" in done.stderr
    (row,) = [row for row in data["rows"] if row["kind"] == kind]
    assert (row["file"], row["line"], row["message"]) == ("train.py", line, found[0]["Message"])


def test_clean_twins_have_no_row(insight):
    text = TRAIN
    for mark in ("FORWARD", "DATA", "STEP"):
        twins = [clean for where, _, clean, _ in PLANTED.values() if where == mark]
        text = re.sub(rf"( *)#{mark}", lambda match: "\n".join(match[1] + twin for twin in twins), text)  # noqa: B023
    rows, data, _, done = insight(text, "")
    assert done.returncode == 0, done.stderr[-2000:]
    assert rows == []
    (memory,) = data["memory"]
    assert memory["fits"] == {"32 GiB": True, "64 GiB": True}
    assert memory["batch"] == 8
    assert data["roofline"]["seconds"]["at_best"] < data["roofline"]["seconds"]["at_worst"]


# Two ranks that train together.
RANKS = """
import os

import torch
import torch.distributed as dist
import torch_npu

rank = int(os.environ["LOCAL_RANK"])
torch.npu.set_device(rank)
dist.init_process_group("hccl")
net = torch.nn.Linear(64, 64).to("npu")
ddp = torch.nn.parallel.DistributedDataParallel(net, device_ids=[rank])
optimizer = torch.optim.SGD(ddp.parameters(), 0.01)
size = 32
#SIZE
for step in range(4):
    x = torch.randn(size, 64).pin_memory().to("npu", non_blocking=True)
    loss = ddp(x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
#END
dist.destroy_process_group()
"""
APART = {
    "one rank calls another collective": (
        "END",
        "dist.broadcast(x, 0) if rank else dist.all_reduce(x)",
        r"rank 0 AllReduce of 8\.0 KiB at train\.py:{line}; rank 1 Broadcast of 8\.0 KiB at train\.py:{line}",
        r"rank 0 \(process \d+\) HcclAllReduce of 8192 bytes at train\.py:{line}; rank 1 .* HcclBroadcast",
    ),
    "one rank calls none": (
        "END",
        "dist.all_reduce(x) if rank == 0 else None",
        r"rank 0 waits here in AllReduce for rank 1, whose last call in the group was AllReduce at train",
        r"rank 1 .* has gone; .*rank 0 waits in HcclAllReduce of 8192 bytes at train\.py:{line}",
    ),
}


def rows_of(rows, kind, severity):
    return [row for row in rows if (row["Kind"], row["Severity"]) == (kind, severity)]


@pytest.mark.parametrize("case", sorted(APART))
def test_ranks_that_do_not_meet_are_told_where(insight, case):
    mark, planted, said, error = APART[case]
    rows, _, line, done = insight(
        RANKS.replace(f"#{mark}", planted), planted, command=(*torchrun(2), "train.py")
    )
    assert done.returncode == 1
    (row,) = rows_of(rows, "communication", "error")
    assert (row["File"], row["Start Line"]) == ("train.py", str(line))
    assert re.search(said.format(line=line), row["Message"]), row["Message"]
    assert re.search(error.format(line=line), done.stderr), done.stderr[-4000:]


def test_a_rank_with_less_work_waits(insight):
    planted = "size = 32 * (1 + rank)"
    rows, data, _, done = insight(
        RANKS.replace("#SIZE", planted), planted, command=(*torchrun(2), "train.py")
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (row,) = rows_of(rows, "communication", "warning")
    line = next(i for i, each in enumerate(RANKS.splitlines(), 1) if "loss.backward" in each)
    assert (row["File"], row["Start Line"]) == ("train.py", str(line))
    assert row["Message"] == "rank 0 waits here: rank 1 does 2.0 times its multiply-adds in a step"
    # And the facts: the gradients are reduced once a step, by both.
    assert {row["Kind"] for row in rows} == {"communication"}
    reduced = [fact for fact in data["communication"] if fact["kind"] == "HcclAllReduce" and fact["per_step"]]
    assert [(fact["size"], fact["per_step"], fact["ranks"]) for fact in reduced] == [(2, 1.0, ["0", "1"])]


def test_ranks_alike_wait_for_nobody(insight):
    rows, _, _, done = insight(RANKS, "", command=(*torchrun(2), "train.py"))
    assert done.returncode == 0, done.stderr[-3000:]
    assert {(row["Kind"], row["Severity"]) for row in rows} == {("communication", "info")}


def test_what_does_not_fit_is_told_with_its_largest_part(insight):
    planted = 'table = torch.empty(4, 1 << 30, device="npu")[0, :4].fill_(step)'  # two at a time
    rows, data, line, done = insight(TRAIN.replace("#STEP", planted), planted)
    assert done.returncode == 0, done.stderr[-3000:]
    (row,) = [row for row in rows if row["Kind"] == "memory"]
    assert (row["File"], row["Start Line"]) == ("train.py", str(line))
    assert "does not fit into 32 GiB" in row["Message"]
    assert data["memory"][0]["fits"] == {"32 GiB": False, "64 GiB": True}


INFER = """
import torch
import torch_npu

net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()).to("npu").eval()
with torch.no_grad():
    for length in (8, 8, 6, 5):
        x = torch.ones(length, 4, device="npu")
        net(x)
"""


def test_a_program_without_an_optimizer_has_steps(insight):
    rows, data, line, done = insight(INFER, "x = torch.ones")
    assert done.returncode == 0, done.stderr[-2000:]
    assert data["steps"] == 4
    assert [(row["Kind"], row["Start Line"]) for row in rows] == [("dynamic_shape", str(line))]
    (shapes,) = data["rows"]
    assert shapes["new_steps"] == 2


def test_emulate_reports_insight_of_programs_in_its_folder_and_beside_it(emulate, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "infer.py").write_text(INFER)
    for cwd, shown in ((tmp_path, "infer.py"), (tmp_path / "elsewhere", "../infer.py")):
        options = ("--report", str(tmp_path / "report"))
        done = emulate("python", str(tmp_path / "infer.py"), options=options, cwd=cwd)
        assert done.returncode == 0, done.stderr[-2000:]
        data = json.loads((tmp_path / "report" / "npu_insight.json").read_text())
        # Not of the run before, whose files are there as well.
        assert [(row["kind"], row["file"]) for row in data["rows"]] == [("dynamic_shape", shown)]
        assert len(data["processes"]) == 1
