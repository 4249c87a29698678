"""Programs that a configuration drives: migrated, and started through their migrated configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.cli import main

TRAIN = """\
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
def migrate(tmp_path: Path):
    def run(files: dict[str, str]) -> Path:
        source = tmp_path / "project"
        for name, text in files.items():
            path = source / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        output = tmp_path / "out"
        assert main.run(["migrate", "-q", "-i", str(source), "-o", str(output), "-v", "2.13"]) == 0
        return output / "project_msft"

    return run


def test_a_program_with_a_configuration(emulate, migrate) -> None:
    project = migrate({"train.py": TRAIN, "conf/train.yaml": CONFIG})
    changed = (project / "conf" / "train.yaml").read_text()
    assert changed == CONFIG.replace("cuda:0", "npu:0").replace("device: cuda", "device: npu")
    result = emulate("python", "train.py", "--config", "conf/train.yaml", cwd=project)
    assert "trained on npu:0 and npu" in result.stdout, result.stderr


def test_a_program_whose_configuration_is_put_together(emulate, migrate) -> None:
    config = "defaults:\n  - hardware: cuda\ndist:\n  backend: nccl  # of torch\n"
    project = migrate(
        {"main.py": HYDRA_LIKE, "conf/config.yaml": config, "conf/hardware/cuda.yaml": "device: cuda\n"}
    )
    assert (project / "conf" / "config.yaml").read_text() == config.replace("nccl", "hccl")
    launcher = ("python", "-m", "torch.distributed.run", "--nproc_per_node=2", "--master_port=29741")
    result = emulate(*launcher, "main.py", "conf", options=("--devices", "2"), cwd=project)
    for rank in (0, 1):
        assert f"trained on npu:{rank} with hccl" in result.stdout, result.stderr
