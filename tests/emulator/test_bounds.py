"""`verify --steps`, `--shrink`, without a command, and programs that lack something."""

from __future__ import annotations

from zipfile import is_zipfile

import pytest

from tests.emulator.conftest import free_port
from tests.emulator.test_distributed import torchrun

PARALLEL = """
import os
import sys
import torch
import torch_npu
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def main():
    rank = int(os.environ["RANK"])
    torch.npu.set_device(rank)
    dist.init_process_group("hccl")
    net = DistributedDataParallel(torch.nn.Linear(4, 1).npu())
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for step in range(100000):
        loss = net(torch.randn(8, 4).npu()).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0:
            torch.save(net.state_dict(), "last.pt")
            os.write(1, f"step {{step}}\\n".encode())  # whole: print may write a line in parts
        {more}


if __name__ == "__main__":
    try:
        main()
    finally:
        os.write(1, b"cleaned up\\n")
"""
SCALED = """
import argparse
import atexit
import torch
import torch_npu
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("-b", "--batch-size", type=int, default=256)
parser.add_argument("-j", "--workers", type=int, default=4)
parser.add_argument("--epochs", type=int, default=100000)


class Discriminator(torch.nn.Linear):
    pass


def main():
    args = parser.parse_args()
    atexit.register(print, "at exit")
    net, other = torch.nn.Linear(4, 1).npu(), Discriminator(4, 1).npu()
    first = torch.optim.SGD(net.parameters(), 0.1)
    second = torch.optim.Adam(other.parameters(), 0.1)
    scaler = torch.npu.amp.GradScaler()
    loader = DataLoader(TensorDataset(torch.randn(64, 4)), args.batch_size, num_workers=args.workers)
    for epoch in range(args.epochs):
        for (batch,) in loader:
            for model, optimizer in ((net, first), (other, second)):
                with torch.npu.amp.autocast():
                    loss = model(batch.npu()).pow(2).mean()
                optimizer.zero_grad()
                scaler.scale(loss).backward()
                scaler.step(optimizer)
            scaler.update()
            print("batch", batch.shape[0], "after both")


if __name__ == "__main__":
    main()
"""
INFERENCE = """
import torch, torch_npu
net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)).npu()
while True:
    print("pass", net(torch.ones(2, 4).npu()).shape)
"""


SPAWNED = """
import torch, torch_npu
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.utils.data import DataLoader, TensorDataset

class Wrapper:
    def __init__(self, inner): self.inner = inner
    def zero_grad(self): self.inner.zero_grad()
    def step(self): self.inner.step()

def worker(rank, queue):
    torch.npu.set_device(rank)
    dist.init_process_group("hccl", init_method="tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1).npu())
    opt = Wrapper(torch.optim.Adam(net.parameters(), 0.1))
    loader = DataLoader(TensorDataset(torch.randn(1000, 4)), 2, num_workers=2, persistent_workers=True)
    best = 0
    for epoch in range(1000):
        for i, (x,) in enumerate(loader):
            try:
                loss = net(x.npu()).pow(2).mean()
            except Exception as e:
                print("caught", e); continue
            opt.zero_grad(); loss.backward(); opt.step()
            if rank == 0: print("step", i, flush=True)
    queue.put(best)
    dist.destroy_process_group()

if __name__ == "__main__":
    queue = mp.get_context("spawn").SimpleQueue()
    mp.spawn(worker, (queue,), nprocs=2)
    print("result", queue.get())
"""


def test_ranks_end_after_their_steps(verify, tmp_path):
    code, verdict, done = verify(PARALLEL.format(more=""), "--steps", "2", command=(*torchrun(2), "train.py"))
    assert (code, verdict["verdict"]) == (0, "passed"), done.stderr[-3000:]
    # One rank prints steps, and the other may write between its lines.
    assert [line for line in done.stdout.splitlines() if line.startswith("step")] == ["step 0", "step 1"]
    assert done.stdout.count("cleaned up\n") == 2
    assert [(each["rank"], each["steps"]) for each in verdict["bounded"]] == [("0", 2), ("1", 2)]
    assert is_zipfile(tmp_path / "project" / "last.pt")
    assert verdict["program"]["processes_left"] == 0


@pytest.mark.thorough
def test_an_evaluation_on_one_rank_does_not_fail_the_other(verify):
    more = "if rank == 0 and step == 1: net.module(torch.ones(1, 4).npu())\n        dist.barrier()"
    code, verdict, done = verify(
        PARALLEL.format(more=more), "--steps", "2", command=(*torchrun(2), "train.py")
    )
    assert (code, verdict["verdict"]) == (0, "passed"), done.stderr[-3000:]
    assert {each["rank"] for each in verdict["bounded"]} == {"0"}


def test_steps_with_scalers_and_two_optimizers_and_small_batches(verify):
    """Without a command, too: what is started is the training script that is found."""
    code, verdict, done = verify(SCALED, "--steps", "3", "--shrink", "--devices", "1", command=())
    assert (code, verdict["verdict"]) == (0, "passed"), done.stderr[-3000:]
    own = [line for line in done.stdout.splitlines() if line.startswith(("batch", "at"))]
    assert own == ["batch 2 after both"] * 3 + ["at exit"], done.stdout
    assert [each["steps"] for each in verdict["bounded"]] == [3]
    assert verdict["set"] == ["--batch-size 2 (was 256)", "--workers 1 (was 4)"]
    assert verdict["command"] == ["python", "train.py", "--batch-size", "2", "--workers", "1"]
    assert "starts python train.py" in done.stderr


@pytest.mark.thorough
def test_ranks_that_the_program_starts_with_workers_and_a_wrapped_optimizer(verify):
    """The process that started them waits for a result that no rank gives any more."""
    program = SPAWNED.replace("{port}", str(free_port()))
    code, verdict, done = verify(program, "--steps", "2", "--idle", "8", "--devices", "2")
    assert (code, verdict["verdict"]) == (0, "passed"), done.stderr[-3000:]
    assert [line for line in done.stdout.splitlines() if "step" in line] == ["step 0", "step 1"]
    assert [each["steps"] for each in verdict["bounded"]] == [2, 2]
    assert "waits in get at train.py:" in verdict["lacks"]["lines"][0]
    assert verdict["program"]["processes_left"] == 0


@pytest.mark.thorough
def test_forward_passes_of_a_program_without_an_optimizer(verify):
    code, verdict, done = verify(INFERENCE, "--steps", "2")
    assert (code, verdict["verdict"]) == (0, "passed"), done.stderr[-3000:]
    assert done.stdout.count("pass") == 2
    assert (verdict["bounded"][0]["steps"], verdict["bounded"][0]["passes"]) == (0, 2)


LACKING = {
    "data missing": ("open('data/train.txt')", "data missing", "train.py:1"),
    "hook of its own": (
        "import sys\nsys.excepthook = lambda *_: print('failed')\nopen('data/train.txt')",
        "data missing",
        "train.py:3",
    ),
    "port taken": (
        "import socket\nkept = [socket.socket(), socket.socket()]\n"
        "for each in kept:\n    each.bind(('', 29871))\n    each.listen()",
        "port taken",
        "train.py:4",
    ),
    "input": ("print('ready?')\nanswer = input()", "waits for input", "train.py:2"),
}


@pytest.mark.parametrize(
    "name",
    [
        "data missing",
        "hook of its own",
        *(pytest.param(name, marks=pytest.mark.thorough) for name in ("port taken", "input")),
    ],
)
def test_what_is_lacking_is_no_failure_of_the_program(verify, name):
    program, lack, place = LACKING[name]
    code, verdict, done = verify(program)
    assert (code, verdict["verdict"], verdict["lacks"]["name"]) == (6, "blocked by the environment", lack), (
        done.stderr
    )
    assert place in verdict["lacks"]["lines"][0]


def test_a_rank_that_does_not_come_is_named(verify):
    program = """
import os
import torch.distributed as dist
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="{port}", RANK="0", WORLD_SIZE="2")
dist.init_process_group("gloo")
""".replace("{port}", str(free_port()))
    code, verdict, done = verify(program, "--idle", "6")
    assert (code, verdict["lacks"]["name"]) == (6, "rank missing"), done.stderr
    (line,) = verdict["lacks"]["lines"]
    assert line.startswith(("process ", "rank 0"))
    assert "train.py:5" in line
    assert verdict["program"]["still_seconds"] >= 6


@pytest.mark.thorough
def test_a_program_that_computes_is_not_said_to_wait(verify):
    code, verdict, _ = verify("while True: pass", "--timeout", "8", "--idle", "4")
    assert (code, verdict["verdict"], verdict["lacks"]) == (1, "timed out", None)
