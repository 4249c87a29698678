"""Programs on several emulated NPUs."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

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
    ended, codes = done.stdout.splitlines()
    assert codes == "[3, -9]"
    assert int(ended.split()[2]) <= 5
    assert "rank 1 of group" in done.stderr


def torchrun(ranks: int) -> tuple[str, ...]:
    return ("torchrun", "--standalone", f"--nproc_per_node={ranks}")


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
