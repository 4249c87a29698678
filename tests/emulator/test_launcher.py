"""run_distributed_npu.sh with the real torchrun and torch_npu."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.emulator.conftest import free_port, migrated

PROGRAM = """\
import os
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def main():
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    dist.init_process_group("nccl")
    model = DistributedDataParallel(torch.nn.Linear(4, 1).cuda(), device_ids=[local])
    model(torch.ones(2, 4).cuda()).sum().backward()
    total = torch.ones(1).cuda()
    dist.all_reduce(total)
    sys.stdout.write(f"rank {dist.get_rank()} on {total.device}: {total.item():.0f} {sys.argv[1:]}\\n")
    sys.stdout.flush()
    if "fail" in sys.argv and dist.get_rank() == 1:
        sys.exit(7)
    if "wait" in sys.argv or "fail" in sys.argv:
        time.sleep(100)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("launcher")
    return migrated(folder, {"train it.py": PROGRAM}, name="my project") / "run_distributed_npu.sh"


@pytest.mark.parametrize("ranks", [pytest.param(1, marks=pytest.mark.thorough), 2])
def test_ranks_of_one_machine(emulate, script, tmp_path, ranks):
    done = emulate("bash", str(script), f"--nproc={ranks}", "--", "a b", cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    expected = [f"rank {rank} on npu:{rank}: {ranks} ['a b']" for rank in range(ranks)]
    assert sorted(done.stdout.splitlines()) == expected
    logs = sorted(next((tmp_path / "npu_logs").iterdir()).iterdir())
    assert [expected[rank] in log.read_text() for rank, log in enumerate(logs)] == [True] * ranks


@pytest.mark.thorough
def test_as_many_ranks_as_npus(emulate, script, tmp_path):
    done = emulate("bash", str(script), options=("--devices", "3"), cwd=tmp_path)
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 3), done.stderr[-3000:]


def test_a_failing_rank(emulate, script, tmp_path):
    done = emulate("bash", str(script), "--nproc", "2", "--", "fail", cwd=tmp_path, timeout=900)
    assert done.returncode == 7, done.stderr[-3000:]
    assert "rank 1 ended with code 7" in done.stderr


def test_two_machines_that_are_one(emulate, script, tmp_path, cache):
    where = ("--nnodes=2", "--nproc=1", "--master-addr=127.0.0.1", f"--master-port={free_port()}")
    machine = ("bash", str(script), *where, "--node-rank")
    # Each launch sees one NPU of its own.
    whole = (
        'ASCEND_RT_VISIBLE_DEVICES=1 "$@" 1 --log-dir second >second.out 2>second.err & '
        'ASCEND_RT_VISIBLE_DEVICES=0 "$@" 0 --log-dir first; code=$?; wait $! && exit $code'
    )
    done = emulate("bash", "-c", whole, "bash", *machine, options=("--devices", "2"), cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:] + (tmp_path / "second.err").read_text()[-2000:]
    assert done.stdout == "rank 0 on npu:0: 2 []\n"
    assert (tmp_path / "second.out").read_text() == "rank 1 on npu:0: 2 []\n"


def test_ctrl_c(emulate, script, tmp_path, cache):
    process = subprocess.Popen(
        [sys.executable, "-m", "migrator", "emulate", "--", "bash", str(script), "--nproc=2", "--", "wait"],
        cwd=tmp_path,
        env={**os.environ, "XDG_CACHE_HOME": str(cache), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert sorted([process.stdout.readline()[:6], process.stdout.readline()[:6]]) == ["rank 0", "rank 1"]
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=900)
    assert process.returncode == 130, err[-3000:]
    assert "ended by SIGINT" in err
    found = subprocess.run(
        ["pgrep", "-fa", str(script.parent / "train it.py")], capture_output=True, text=True
    )
    assert found.stdout == ""
