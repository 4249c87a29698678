"""`npumigrate verify`: verdicts on programs that pass, fail, or only seem to work."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from migrator.cli import main
from tests.emulator.conftest import MODEL, migrated
from tests.emulator.test_distributed import torchrun


def migrated_training(folder: Path, train: str) -> Path:
    return migrated(folder, {"model.py": MODEL, "train.py": train}, name="original")


def test_training_on_an_npu_passes(verify):
    code, verdict, done = verify({"train": "from model import train\ntrain('npu:1')\n"}, "--devices", "2")
    assert code == verdict["exit_code"] == 0
    assert (verdict["verdict"], verdict["ran_on"], verdict["trained"]) == ("passed", "npu", True)
    assert verdict["npu_share"] == {"forward": 1.0, "backward": 1.0, "measure": "multiply-adds"}
    assert list(verdict["operators"]) == ["1"]
    assert verdict["operators"]["1"]["aten::addmm"] == 6
    (process,) = verdict["processes"]
    assert process["command"] == ["train.py"]
    assert process["work"]["1"]["forward"]["multiply_adds"] == 3 * 12 * (6 * 8 + 8)
    assert process["dynamic_shapes"] == {"steps": 3, "operators": []}
    assert verdict["cuda_reached"] == []
    assert done.stdout.count("\n") == 3
    assert "Verdict: passed" in done.stderr
    said = done.stderr.partition("Verdict")[2].splitlines()
    assert [line for line in said if len(line) > 80 and " report " not in line] == []  # commands stay whole


def test_a_module_that_is_imported_late_and_is_not_there(verify):
    program = """
import sys, types
class Late(types.ModuleType):
    def __getattr__(self, name):
        raise ImportError(name)
from model import train
train("npu:1")
sys.modules["late"] = Late("late")
"""
    code, verdict, done = verify(program)
    assert (code, verdict["verdict"]) == (0, "passed"), done.stderr


def test_training_that_quietly_stays_on_the_cpu(verify):
    program = """
import torch
from model import train
device = "cuda" if torch.cuda.is_available() else "cpu"
train(device)
"""
    code, verdict, done = verify({"train": program})
    assert (code, verdict["verdict"], verdict["ran_on"]) == (3, "not on the NPU", "cpu")
    assert verdict["reasons"][0] == "the training (its backward pass) ran on the CPU"
    assert verdict["npu_share"]["backward"] == 0
    (place,) = verdict["cuda_reached"]
    found = [place[key] for key in ("file", "line", "kind", "count")]
    assert found == ["train.py", 4, "torch.cuda.is_available", 1]
    assert verdict["cuda_not_reached"] == 1
    assert "train.py:4  1× torch.cuda.is_available" in done.stderr


@pytest.mark.thorough
def test_a_part_on_the_cpu_is_told(verify):
    program = (
        "from copy import deepcopy\nfrom model import data, net, train\ndeepcopy(net)(data)\ntrain('npu')\n"
    )
    code, verdict, _ = verify({"train": program})
    assert (code, verdict["ran_on"]) == (3, "mixed")
    assert verdict["reasons"] == ["the work ran for 25% of its multiply-adds on the CPU"]


def test_no_torch_npu(verify):
    program = """
import os
os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
from model import train
train("cpu")
"""
    code, verdict, _ = verify({"train": program}, cold=True)
    assert (code, verdict["reasons"]) == (3, ["torch_npu was never imported: everything ran on the CPU"])


def test_cuda_that_was_reached_is_named(verify):
    program = """
import torch
from model import data, train
train("npu")
for _ in range(2):
    data.is_cuda
backend = "nccl"
data.cuda()
"""
    code, verdict, done = verify({"train": program})
    assert (code, verdict["verdict"], verdict["program"]["exit_code"]) == (1, "program failed", 1)
    assert [(place["line"], place["kind"], place["count"]) for place in verdict["cuda_reached"]] == [
        (6, ".is_cuda", 2),
        (7, "'nccl'", 1),
        (8, ".cuda", 1),
    ]
    assert "Torch not compiled with CUDA enabled" in done.stderr


def test_the_end_of_the_time(verify):
    code, verdict, _ = verify({"train": "import time; time.sleep(100)"}, "--timeout", "2")
    assert (code, verdict["verdict"], verdict["program"]["timed_out"]) == (1, "timed out", True)


def test_two_ranks(verify):
    program = """
import os, torch, torch.distributed as dist
from model import train
rank = int(os.environ["RANK"])
dist.init_process_group("hccl")
torch.npu.set_device(rank)
train(f"npu:{rank}")
dist.all_reduce(torch.ones(8, device=f"npu:{rank}"))
free, total = torch.npu.mem_get_info(1 - rank)
assert free < total, "the other rank uses its NPU"
dist.destroy_process_group()
"""
    code, verdict, _ = verify({"train": program}, command=(*torchrun(2), "train.py"))
    assert code == 0, verdict
    ranks = {
        process["rank"]: list(process["operators"])
        for process in verdict["processes"]
        if process["operators"]
    }
    assert ranks == {"0": ["0"], "1": ["1"]}
    assert verdict["collectives"]["HcclAllReduce"] == {"calls": 2, "bytes": 64}


def test_the_work_of_a_forked_child_counts(verify):
    program = """
import multiprocessing, torch_npu
from model import train
child = multiprocessing.get_context("fork").Process(target=train, args=("npu",))
child.start()
child.join()
"""
    code, verdict, done = verify(program)
    assert (code, verdict["ran_on"], verdict["trained"]) == (0, "npu", True), done.stderr


def test_mixed_precision_that_is_asked_of_cuda_is_a_warning(verify):
    program = """
import torch, torch_npu
from model import net, data, train
def autocast(enabled, device="cuda"):
    return torch.amp.autocast(device, enabled=enabled)
torch.amp.autocast("cuda", torch.float16, False)
train("npu")
for step in range(2):
    with autocast(True):
        net(data.npu())
"""
    code, verdict, done = verify(program)
    assert (code, verdict["verdict"]) == (0, "passed with a warning"), done.stderr
    assert verdict["reasons"] == ["autocast of CUDA is off: CUDA is not available (train.py:5)"]


CUDA = """
import torch
from model import train
torch.cuda.set_device(0)
train(torch.device("cuda", 0))
torch.cuda.synchronize()
"""


def test_the_numbers_of_the_original(verify, tmp_path):
    code, verdict, done = verify(migrated_training(tmp_path, CUDA), "--compare-cpu", "--tolerance", "1e-6")
    assert code == 0, done.stderr
    assert verdict["original"]["folder"] == str(tmp_path / "original")
    assert verdict["original"]["cuda_on_cpu"] > 0
    comparison = verdict["original"]["comparison"]
    assert (comparison["agrees"], comparison["lines"], comparison["numbers"]) == (True, 3, 6)
    assert done.stdout.count("step 0 loss") == 1


DATA_PARALLEL = """
import torch
from torch import nn
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.norm = nn.Linear(4, 4), nn.BatchNorm1d(4)
    def forward(self, x, scale=1):
        return {"y": self.norm(self.layer(x)) * scale, "sum": x.sum()}
class Wrapped(nn.DataParallel):
    pass
x = torch.randn(8, 4).cuda()
for net in (nn.DataParallel(Net().cuda()), Wrapped(Net().cuda(), device_ids=[0, 1])):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        out = net(x, scale=2.0)
        loss = (out["y"] * x).mean() + out["y"].pow(2).mean() + out["sum"].mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print("loss", loss.item(), "mean", net.module.norm.running_mean.sum().item())
"""


def test_data_parallel_trains_on_several_npus(verify, tmp_path):
    result = migrated_training(tmp_path, DATA_PARALLEL)
    assert "device_ids=[0, 1]" in (result / "train.py").read_text()
    code, verdict, done = verify(result, "--devices", "2", "--compare-cpu", "--tolerance", "1e-6")
    assert code == 0, done.stderr
    assert list(verdict["operators"]) == ["0", "1"]
    comparison = verdict["original"]["comparison"]
    assert (comparison["agrees"], comparison["numbers"]) == (True, 12)


def test_numbers_that_are_not_those_of_the_original(verify, tmp_path):
    result = migrated_training(tmp_path, CUDA)
    text = (result / "model.py").read_text()
    (result / "model.py").write_text(text.replace("0.1)", "0.11)"))
    code, verdict, done = verify(result, "--compare-cpu", "--original", str(tmp_path / "original"))
    assert (code, verdict["verdict"]) == (4, "numbers differ")
    lines = verdict["original"]["comparison"]["compared"]
    assert [line["agrees"] for line in lines] == [True, False, False]
    assert lines[1]["original"] in done.stderr


@pytest.mark.thorough
def test_nothing_to_compare(verify, tmp_path):
    program = """
import contextlib, io
import torch
from model import train
with contextlib.redirect_stdout(io.StringIO()):
    train(torch.device("cuda"))
print("done 1")
"""
    code, verdict, _ = verify(migrated_training(tmp_path, program), "--compare-cpu")
    assert (code, verdict["verdict"], verdict["ran_on"]) == (5, "not compared", "npu")
    assert verdict["reasons"] == ["the two runs printed no comparable numbers"]


@pytest.mark.thorough
def test_an_original_that_fails(verify, tmp_path):
    result = migrated_training(tmp_path, CUDA)
    (tmp_path / "original" / "train.py").write_text("raise SystemExit(7)\n")
    code, verdict, _ = verify(result, "--compare-cpu")
    assert (code, verdict["reasons"]) == (5, ["the original on the CPU: the program ended with exit code 7"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("missing", "--", "true"), "missing: no such file or folder"),
        ((".",), "no program to run: no training script was found in "),
        ((".", "--original", ".", "--", "true"), "--original needs --compare-cpu"),
        (
            (".", "--soc", "H100", "--", "true"),
            "--soc: 'H100' is not an Ascend chip name, such as Ascend910B2",
        ),
        ((".", "--json", "no/where.json", "--", "true"), "--json: /"),
        ((".", "--json", ".", "--", "true"), "--json: expected a file, not a folder: ."),
        (
            (".", "--compare-cpu", "--", "true"),
            ". has no migration_report/summary.json: give the original with --original DIR",
        ),
    ],
)
def test_wrong_use(capsys, monkeypatch, tmp_path, options, message):
    monkeypatch.chdir(tmp_path)
    assert main.run(["verify", *options]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"npumigrate: {message}")
    assert captured.err.count("\n") == 1


def test_what_a_migration_says_to_run_next(emulate, cache, tmp_path):
    """The line as it is printed; emulate has built the emulator."""
    source = tmp_path / "it's $HOME"
    source.mkdir()
    (source / "model.py").write_text(MODEL)
    (source / "train.py").write_text("import torch\nfrom model import train\n\ntrain(torch.device('cuda'))\n")
    line = [sys.executable, "-m", "migrator", "-i", str(source), "-o", str(tmp_path), "-v", "2.12"]
    line += ["-m", "train.py"]
    said = subprocess.run(line, capture_output=True, text=True, check=True).stdout.splitlines()
    assert said[-4] == "Next"
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        ["bash", "-c", said[-2]], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stderr
    assert "Verdict: passed" in done.stderr
    assert "step 2 loss" in done.stdout
    assert "the project was migrated for 2.12.0:" in done.stderr
