"""What the pods of a Kubernetes job start, with emulated NPUs; the test does the operator's part."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import yaml

from migrator.cli.main import run
from tests.emulator.conftest import free_port, migrated

PROGRAM = """\
import os
import sys

import torch
import torch.distributed as dist

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group(sys.argv[2])
total = torch.ones(1).cuda()
dist.all_reduce(total)
sys.stdout.write(f"{dist.get_rank()}: {total.item():.0f} {total.device.type} {sys.argv[1:]}\\n")
sys.stdout.flush()
dist.destroy_process_group()
"""


def pods(job: Any) -> list[Any]:
    """The containers of the pods, the master's first: their number in this order is RANK."""
    if job["kind"] == "Job":
        roles = job["spec"]["tasks"]
    else:
        roles = [job["spec"]["pytorchReplicaSpecs"][name] for name in ("Master", "Worker")]
    return [role["template"]["spec"]["containers"][0] for role in roles for _ in range(role["replicas"])]


@pytest.mark.parametrize(
    ("kind", "start"),
    [
        ("PyTorchJob", "python train.py"),
        pytest.param("VolcanoJob", "bash run_distributed_npu.sh --", marks=pytest.mark.thorough),
    ],
)
def test_the_pods_of_a_job(emulate, tmp_path, kind, start):
    project = migrated(tmp_path, {"train.py": PROGRAM}, "-m", "train.py")
    manifest = tmp_path / "job.yaml"
    job = [*f"--kind {kind} --name j --image i --workers 2 --npus 2 -o".split(), str(manifest)]
    assert run(["launch", "k8s", *job, "--", *start.split(), "--backend", "nccl"]) == 0
    containers = pods(yaml.safe_load(manifest.read_text()))
    port = str(free_port())

    def pod(number: int) -> list[str]:
        own = {one["name"]: one["value"] for one in containers[number]["env"] if "value" in one}
        given = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "RANK": str(number), "WORLD_SIZE": "4"}
        variables = {**own, **given}
        # Kubernetes fills in $(NAME) itself.
        words = [
            re.sub(r"\$\((\w+)\)", lambda match: variables.get(match.group(1), match.group()), word)
            for word in containers[number]["command"]
        ]
        done = emulate(*words, options=("--devices", "2"), env=variables, cwd=project)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout.splitlines()

    with ThreadPoolExecutor(2) as both:
        lines = [line for said in both.map(pod, range(2)) for line in said]
    assert sorted(lines) == [f"{rank}: 4 npu ['--backend', 'hccl']" for rank in range(4)]
