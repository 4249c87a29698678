"""Programs that a script drives: migrated, and started through their own migrated script."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from migrator.cli import main

TRAIN = """\
import argparse
import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--where", choices=["cuda", "cpu"], required=True)
    parser.add_argument("--dist-backend", default="gloo", choices=["nccl", "gloo"])
    parser.add_argument("--name", default="plain")
    return parser.parse_args()


def main():
    args = options()
    rank = int(os.environ.get("LOCAL_RANK", 0))
    device = torch.device(args.where, rank)
    model = torch.nn.Linear(4, 2).to(device)
    if "WORLD_SIZE" in os.environ:
        dist.init_process_group(args.dist_backend)
        model = DistributedDataParallel(model)
    model(torch.ones(3, 4, device=device)).sum().backward()
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "all")
    text = f"trained {args.name} on {device} of {visible}"
    print(text + (f" with {dist.get_backend()}" if dist.is_initialized() else "") + "\\n", end="", flush=True)
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
"""
RUN = """\
#!/bin/bash
#SBATCH --gres=gpu:2
set -euo pipefail
cd "$(dirname "$0")/.."
WHERE=${WHERE:-cuda}
ARGS=(--where "$WHERE" --dist-backend=nccl)
if [ -z "${CUDA_VISIBLE_DEVICES+x}" ]; then
  export CUDA_VISIBLE_DEVICES=0,1
fi
NUMBER=$(echo "$CUDA_VISIBLE_DEVICES" | tr ',' '\\n' | wc -l)
echo "starting on $WHERE"
python -m torch.distributed.run --nproc_per_node="$NUMBER" --master_port=29743 \\
  tools/train.py "${ARGS[@]}" --name cuda "$@"
"""
LOOP = """\
#!/bin/sh
for device in cuda cpu; do
  CUDA_VISIBLE_DEVICES=1 python train.py --where $device
done
bash -c 'python train.py --where "cuda"'
CMD="python train.py --where cuda --name last"
eval "$CMD"
"""
MAKE = """\
WHERE ?= cuda
export CUDA_VISIBLE_DEVICES = 1

train: train.py  # once
\t@python $< --where $(WHERE) \\
\t  --name made
"""


@pytest.fixture
def start(emulate, tmp_path: Path):
    def run(files: dict[str, str], *command: str) -> str:
        for name, text in files.items():
            path = tmp_path / "project" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        output = tmp_path / "out"
        source = str(tmp_path / "project")
        assert main.run(["migrate", "-q", "-i", source, "-o", str(output), "-v", "2.13"]) == 0
        result = output / "project_msft"
        review = (result / "migration_report" / "manual_review.csv").read_text()
        assert "NPU94" not in review
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        answer = emulate(*command, options=("--devices", "2"), cwd=result, env={"PATH": path})
        assert answer.returncode == 0, answer.stderr
        return str(answer.stdout)

    return run


def test_a_launcher_with_options_in_variables(start) -> None:
    out = start({"tools/train.py": TRAIN, "scripts/run.sh": RUN}, "bash", "scripts/run.sh")
    for rank in (0, 1):
        assert f"trained cuda on npu:{rank} of 0,1 with hccl\n" in out
    assert "starting on npu\n" in out


def test_loops_and_shells_in_shells(start) -> None:
    out = start({"train.py": TRAIN, "all.sh": LOOP}, "sh", "all.sh")
    assert [line for line in out.splitlines() if line.startswith("trained")] == [
        "trained plain on npu:0 of 1",
        "trained plain on cpu:0 of 1",
        "trained plain on npu:0 of all",
        "trained last on npu:0 of all",
    ]


def test_a_makefile(start) -> None:
    assert "trained made on npu:0 of 1\n" in start({"train.py": TRAIN, "Makefile": MAKE}, "make", "train")
