"""Programs that a script or a configuration drives: migrated, and started through it as it was migrated."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.emulator.conftest import migrated

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

CONFIGURED = """\
import argparse
import yaml
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--config", required=True)
options = parser.parse_args()
with open(options.config) as file:
    config = yaml.safe_load(file)
device = torch.device(config["train"]["run_on"])
if device.type == "cuda":
    torch.cuda.set_device(device)
model = torch.nn.Linear(4, 2).to(config["model"]["device"])
loss = model(torch.ones(3, 4, device=device)).sum()
loss.backward()
print("trained on", model.weight.grad.device, "and", config["model"]["device"])
"""
CONFIG = """\
# what is trained where
train: &train
  run_on: cuda:0   # the first one
  branch: cuda
model:
  device: cuda
  <<: *train
"""
HYDRA_LIKE = """\
import os
import sys
import yaml
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def compose(folder):
    config = yaml.safe_load(open(os.path.join(folder, "config.yaml")))
    for choice in config.pop("defaults"):
        for group, name in choice.items():
            config[group] = yaml.safe_load(open(os.path.join(folder, group, name + ".yaml")))
    return config


def main():
    cfg = compose(sys.argv[1])
    rank = int(os.environ["LOCAL_RANK"])
    dist.init_process_group(cfg["dist"]["backend"])
    if cfg["hardware"]["device"] == "cuda":
        torch.cuda.set_device(rank)
    device = torch.device(cfg["hardware"]["device"], rank)
    model = DistributedDataParallel(torch.nn.Linear(4, 2).to(device))
    model(torch.ones(3, 4, device=device)).sum().backward()
    print(f"trained on {device} with {dist.get_backend()}\\n", end="", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
"""


@pytest.fixture
def start(emulate, tmp_path: Path):
    def run(files: dict[str, str], *command: str) -> str:
        result = migrated(tmp_path, files)
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


def test_a_program_with_a_configuration(emulate, tmp_path: Path) -> None:
    project = migrated(tmp_path, {"train.py": CONFIGURED, "conf/train.yaml": CONFIG})
    changed = (project / "conf" / "train.yaml").read_text()
    assert changed == CONFIG.replace("cuda:0", "npu:0").replace("device: cuda", "device: npu")
    result = emulate("python", "train.py", "--config", "conf/train.yaml", cwd=project)
    assert "trained on npu:0 and npu" in result.stdout, result.stderr


def test_a_program_whose_configuration_is_put_together(emulate, tmp_path: Path) -> None:
    config = "defaults:\n  - hardware: cuda\ndist:\n  backend: nccl  # of torch\n"
    project = migrated(
        tmp_path,
        {"main.py": HYDRA_LIKE, "conf/config.yaml": config, "conf/hardware/cuda.yaml": "device: cuda\n"},
    )
    assert (project / "conf" / "config.yaml").read_text() == config.replace("nccl", "hccl")
    launcher = ("python", "-m", "torch.distributed.run", "--nproc_per_node=2", "--master_port=29741")
    result = emulate(*launcher, "main.py", "conf", options=("--devices", "2"), cwd=project)
    for rank in (0, 1):
        assert f"trained on npu:{rank} with hccl" in result.stdout, result.stderr
