"""Programs on several emulated NPUs."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.emulator.conftest import free_port
from tests.explain import explain_text

PROGRAMS = "programs"


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.thorough)])
def test_every_collective(emulate, ranks):
    done = emulate(*torchrun(ranks), f"{PROGRAMS}/collectives.py")
    assert (done.returncode, done.stdout) == (0, "all collectives are right\n"), done.stderr[-3000:]


@pytest.mark.thorough
def test_sixteen_ranks_in_two_launches(emulate):
    """As on two hosts: each launch has a node rank of its own."""
    port = str(free_port())

    def launch(node: int) -> str:
        where = ("--nnodes=2", f"--node-rank={node}", "--master-addr=127.0.0.1", f"--master-port={port}")
        done = emulate("torchrun", *where, "--nproc_per_node=8", f"{PROGRAMS}/collectives.py")
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(launch, range(2))) == ["all collectives are right\n", ""]


def test_sharded_models(emulate):
    done = emulate(*torchrun(2), f"{PROGRAMS}/sharded_models.py")
    expected = (0, "sharded models train as one CPU does\n")
    assert (done.returncode, done.stdout) == expected, done.stderr[-3000:]


def test_training_is_that_of_one_cpu(emulate):
    done = emulate(*torchrun(2), f"{PROGRAMS}/parallel_training.py")
    assert (done.returncode, done.stdout) == (0, "DDP and FSDP train as one CPU does\n"), done.stderr[-3000:]


def test_a_dead_rank_ends_the_others(emulate):
    done = emulate("python", f"{PROGRAMS}/dying_rank.py", str(free_port()))
    assert done.returncode == 0, done.stderr[-3000:]
    ended, error, codes = done.stdout.splitlines()
    assert codes == "[3, -9]"
    assert int(ended.split()[2]) <= 5
    gone = r"rank 1 \(process \d+\) of group \w+ has gone; its peers end"
    assert re.search(gone, error)
    assert len(re.findall(gone, done.stderr)) == 1


ONE_NPU = """
import torch, torch.distributed as dist
dist.init_process_group("hccl")
dist.all_reduce(torch.ones(1, device="npu"))
"""
BEGIN = """
import os, time, torch, torch.distributed as dist
rank = int(os.environ["RANK"])
torch.npu.set_device(rank)
dist.init_process_group("hccl"{more})
x = torch.ones(1, device="npu")
"""
LATE = BEGIN.format(more="") + "dist.broadcast(x, 0)\nif rank == 1: time.sleep(60)\ndist.all_reduce(x)\n"
LATE_AGAIN = LATE.replace("dist.broadcast(x, 0)", "dist.all_reduce(x)")
NOT_COME = LATE.replace("dist.broadcast(x, 0)\n", "")
DIFFERENT = LATE.replace("time.sleep(60)", "{}")
TWICE = BEGIN.format(more=", rank=min(rank, 1), world_size=3") + "dist.all_reduce(x)\n"
BOTH = (
    r"the ranks of group \w+ do not call the same collective; rank 0 \(process \d+\) HcclAllReduce of 4 bytes"
)
EXECUTION, CONNECTION = {"HCCL_EXEC_TIMEOUT": "3"}, {"HCCL_CONNECT_TIMEOUT": "6"}


@pytest.mark.parametrize(
    ("program", "words", "text", "code"),
    [
        (
            DIFFERENT.format("x = torch.ones(2, device='npu')"),
            "The parameters of operator HcomAllReduce are inconsistent between ranks, parameter count is",
            rf"{BOTH}; rank 1 \(process \d+\) HcclAllReduce of 8 bytes",
            "EI0005",
        ),
        (
            DIFFERENT.format("x = x.int()"),
            "The parameters of operator HcomAllReduce are inconsistent between ranks, parameter dataType is",
            rf"{BOTH}; rank 1 \(process \d+\) HcclAllReduce of 4 bytes",
            "EI0005",
        ),
        (
            DIFFERENT.format("dist.broadcast(x, 0)"),
            "Getting socket times out. Reason: The remote does not initiate a connect request",
            rf"{BOTH}; rank 1 \(process \d+\) HcclBroadcast of 4 bytes",
            "EI0006",
        ),
        (
            DIFFERENT.format("dist.broadcast(x, 0)").replace("if rank", "dist.all_reduce(x)\nif rank"),
            "The wait execution of the Notify register times out.",
            rf"{BOTH}; rank 1 \(process \d+\) HcclBroadcast of 4 bytes",
            "EI0002",
        ),
        (
            ONE_NPU,
            "Failed to initialize the HCCP process. Reason: Maybe the last training process is running.",
            r"ranks 0 \(process \d+\) and 1 \(process \d+\) of group \w+ are both on NPU 0:"
            r" call torch\.npu\.set_device\(local_rank\) before the first collective",
            "EJ0001",
        ),
        (
            LATE,
            "Getting socket times out. Reason: The remote does not initiate a connect request",
            r"rank 0 of group \w+ has waited 6 s in HcclAllReduce of 4 bytes;"
            r" rank 1 \(process \d+\) is in no call of the group, its last was HcclBroadcast",
            "EI0006",
        ),
        (
            LATE_AGAIN,
            "The wait execution of the Notify register times out.",
            r"rank 0 of group \w+ has waited 3 s in HcclAllReduce of 4 bytes;"
            r" rank 1 \(process \d+\) is in no call of the group, its last was HcclAllReduce",
            "EI0002",
        ),
        (
            NOT_COME,
            "Failed to collect cluster information of the communicator based on rootInfo detection.",
            r"rank 0 of group \w+ has waited 6 s in the forming of the group; rank 1 has not come",
            "EI0015",
        ),
        (
            TWICE,
            "Failed to collect cluster information of the communicator based on rootInfo detection.",
            r"two processes of group \w+ are rank 1; one is process \d+",
            "EI0015",
        ),
    ],
    ids=[
        "other sizes",
        "other dtypes",
        "another order",
        "another order later",
        "two ranks on one NPU",
        "a rank that does not come",
        "a rank that does not come later",
        "a rank that is not there",
        "a rank twice",
    ],
)
def test_what_would_hang_is_told(emulate, tmp_path, program, words, text, code):
    """In one line, and in the exception, which has the line of the program and CANN's code and words."""
    (tmp_path / "train.py").write_text(program)
    ranks = 3 if program == TWICE else 2
    env = EXECUTION if program == LATE_AGAIN else CONNECTION
    done = emulate(*torchrun(ranks), "train.py", cwd=tmp_path, env=env, timeout=900)
    assert done.returncode == 1
    told = len(re.findall(f"npumigrate emulate: {text}", done.stderr))
    # Of three ranks torchrun may end the one that says it, as soon as another has failed.
    assert told == 1 or (program == TWICE and told == 0), done.stderr
    expected = rf"RuntimeError: [^\0]*\n\[rank\d\]: {code}: [^\0]*{re.escape(words)}[^\0]*{text}"
    assert re.search(expected, done.stderr), done.stderr
    said = explain_text(done.stderr)
    assert said is not None
    assert said.entry is not None
    # Of two that call different collectives torchrun may see either fail first; the other's notify waits.
    first = {"EI0006", "EI0002"} if text.endswith("HcclBroadcast of 4 bytes") else {code}
    assert said.entry.code in ({"rank-not-come"} if program == NOT_COME else first)
    assert said.place
    assert said.place.file == str(tmp_path / "train.py")


def torchrun(ranks: int) -> tuple[str, ...]:
    return ("torchrun", "--standalone", f"--nproc_per_node={ranks}")
