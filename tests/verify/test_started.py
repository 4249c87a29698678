"""What a command starts, what starts a project without one, and what `--shrink` sets."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from migrator.launch.target import Start
from migrator.project.start_ways import StartWay
from migrator.verify.run import as_migrated, command_of, entry_of, launched, shrink

TRAIN = """
import argparse
import torch.multiprocessing as mp
import torch.distributed as dist
from options import more

parser = argparse.ArgumentParser()
parser.add_argument("-b", "--batch-size", type=int, default=256)
parser.add_argument("--val_batch_size", type=int, default=1)
parser.add_argument("--batch-norm", action="store_true")
parser.add_argument("--epochs", type=int, default=90)
more(parser)
"""
OPTIONS = """
def more(parser):
    parser.add_argument("-j", "--num-workers", type=int, default=16)
"""


def project(folder: Path, train: str = TRAIN) -> Path:
    (folder / "train.py").write_text(train)
    (folder / "options.py").write_text(OPTIONS)
    return folder


@pytest.mark.parametrize(
    ("command", "found", "said"),
    [
        (
            ["python", "train.py"],
            ["python", "train.py", "--batch-size", "2", "--num-workers", "1"],
            ("--batch-size 2 (was 256)", "--num-workers 1 (was 16)"),
        ),
        (
            ["torchrun", "-j", "9", "train.py", "-b", "64", "--num-workers=1"],
            ["torchrun", "-j", "9", "train.py", "-b", "2", "--num-workers=1"],
            ("--batch-size 2 (was 64)",),
        ),
        (
            ["python", "-m", "train", "-b", "1", "-j", "0"],
            ["python", "-m", "train", "-b", "1", "-j", "0"],
            (),
        ),
        (["python", "other.py"], ["python", "other.py"], ()),
        (
            ["bash", "run_distributed_npu.sh"],
            ["bash", "run_distributed_npu.sh", "--", "--batch-size", "2", "--num-workers", "1"],
            ("--batch-size 2 (was 256)", "--num-workers 1 (was 16)"),
        ),
    ],
)
def test_only_what_is_large_comes_down(command, found, said, tmp_path: Path) -> None:
    folder = project(tmp_path)
    (folder / "run_distributed_npu.sh").write_text("set -u\nentry=train.py\n")
    assert shrink(command, folder, 8) == (found, said)


def test_a_batch_of_all_ranks_leaves_some_for_each(tmp_path: Path) -> None:
    train = TRAIN + "dist.init_process_group('nccl')\nmp.spawn(print, nprocs=4)\n"
    assert shrink(["python", "train.py"], project(tmp_path, train), 4)[1][0] == "--batch-size 8 (was 256)"


def test_options_of_a_library_are_known(tmp_path: Path) -> None:
    train = "from transformers import HfArgumentParser\n"
    assert shrink(["python", "train.py"], project(tmp_path, train), 1)[1] == (
        "--per_device_train_batch_size 2 (was not given)",
        "--per_device_eval_batch_size 2 (was not given)",
        "--dataloader_num_workers 1 (was not given)",
    )


def test_what_a_command_starts(tmp_path: Path) -> None:
    folder = project(tmp_path)
    assert entry_of(["torchrun", "--nproc_per_node=2", "train.py"], folder)[0] == "train.py"
    assert entry_of(["python", "-m", "torch.distributed.run", "train.py"], folder)[0] == "train.py"
    assert entry_of(["python", "-m", "options"], folder)[0] == "options.py"
    assert entry_of(["make", "train"], folder)[0] == ""
    assert launched(folder) == ""


@pytest.mark.parametrize(
    ("way", "expected"),
    [
        (StartWay("none"), ["python", "train.py"]),
        (StartWay("program", ("--gpus", "%NPROC%")), ["python", "train.py", "--gpus", "2"]),
        (StartWay("launcher", ("--launcher", "pytorch")), ["torchrun", "train.py", "--launcher", "pytorch"]),
        (StartWay("launcher", ("--local_rank", "%LOCAL_RANK%")), ["bash", "run_distributed_npu.sh"]),
    ],
)
def test_without_a_command_the_launchers_way_is_taken(way: StartWay, expected, tmp_path: Path) -> None:
    (tmp_path / "run_distributed_npu.sh").write_text("entry=train.py\n")
    command = command_of(Start("train.py", ways={"train.py": way}), tmp_path, 2)
    if expected[0] == "torchrun":
        assert command[1] == "--nproc_per_node=2"
        assert command[2].startswith("--master_port=")
        del command[1:3]
    assert command == expected


@pytest.mark.parametrize(
    ("given", "started"),
    [
        ("--device cuda --dist-backend=nccl --name cuda", "--device npu --dist-backend=hccl --name cuda"),
        ("--device npu --dist-backend gloo", "--device npu --dist-backend gloo"),
        ("--device cuda:1 --text 'a  b'", "--device npu:1 --text 'a  b'"),
    ],
)
def test_a_command_gets_what_the_migrated_program_takes(given: str, started: str, tmp_path: Path) -> None:
    train = """
import argparse
import torch
parser = argparse.ArgumentParser()
parser.add_argument("--device", default="npu", choices=["npu", "npu:1", "cpu"])
parser.add_argument("--dist-backend", default="hccl")
parser.add_argument("--name")
args = parser.parse_args()
torch.distributed.init_process_group(args.dist_backend)
"""
    (tmp_path / "train.py").write_text(train)
    command = ["torchrun", "--nproc_per_node=2", "train.py"]
    assert as_migrated([*command, *shlex.split(given)], tmp_path) == [*command, *shlex.split(started)]
