"""The samples: migrated and trained on emulated NPUs, with the losses of the originals on the CPU."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import pytest

from migrator.cli import main
from tests.emulator.conftest import HERE
from tests.warm import warm

SAMPLES = HERE.parents[1] / "samples"
SHIM = HERE.parent / "samples" / "shim"
WITHOUT_NPU = HERE.parent / "samples" / "no_torch_npu"
SMALL = ("--synthetic", "--epochs", "1", "--batch-size", "4", "--workers", "0")
RESNET50 = ("main.py", *SMALL, "--steps", "2", "--image-size", "64", "--seed", "0", "--output-dir", "out")
LOSS = re.compile(r"[Ll]oss[ :=]+(\d+\.\d+|nan|inf)")


@pytest.mark.parametrize(
    ("name", "npus", "arguments", "convolutions"),
    [
        (
            "resnet18_cifar",
            1,
            ("train.py", *SMALL, "--steps", "3", "--lr", "0.01", "--checkpoint-dir", "out"),
            20 * 3,
        ),
        (
            "mobilenetv3_single",
            1,
            ("train.py", *SMALL, "--steps", "3", "--image-size", "64", "--no-amp", "--output-dir", "out"),
            52 * 3,
        ),
        pytest.param("resnet50_imagenet", 1, RESNET50, 53 * 2, marks=pytest.mark.thorough),
        ("resnet50_imagenet", 2, RESNET50, 53 * 2),
    ],
    ids=["resnet18", "mobilenetv3", "resnet50", "resnet50-ddp"],
)
def test_losses_are_those_of_the_original_on_the_cpu(emulate, tmp_path, name, npus, arguments, convolutions):
    cpu = losses(on_cpu(SAMPLES / name / arguments[0], npus, arguments[1:]))
    script = migrate(name, tmp_path) / arguments[0]
    report = tmp_path / "report"
    npu = losses(on_npu(emulate, script, npus, arguments[1:], tmp_path, report))
    assert npu == cpu
    assert len(npu) > 3
    assert all(math.isfinite(loss) for loss in npu)
    processes = [json.loads(file.read_text()) for file in report.glob("process-*.json")]
    backward = {
        device: operators["aten::convolution_backward"]
        for process in processes
        for device, operators in process["operators"].items()
    }
    assert backward == {str(device): convolutions for device in range(npus)}
    reducing = sum("HcclAllReduce" in process["collectives"] for process in processes)
    assert reducing == (npus if npus > 1 else 0)


@pytest.mark.parametrize(
    ("name", "ranks", "arguments"),
    [
        pytest.param(
            *("resnet18_cifar", 1, ("train.py", *SMALL, "--steps", "2", "--checkpoint-dir", "out")),
            marks=pytest.mark.thorough,
        ),
        ("mobilenetv3_single", 1, ("train.py", *SMALL, "--steps", "2", "--image-size", "64", "--no-amp")),
        pytest.param("resnet50_imagenet", 2, RESNET50, marks=pytest.mark.thorough),
    ],
    ids=["resnet18", "mobilenetv3", "resnet50-ddp"],
)
def test_one_source_trains_the_same_on_npus_and_on_the_cpu(emulate, tmp_path, name, ranks, arguments):
    original = losses(on_cpu(SAMPLES / name / arguments[0], ranks, arguments[1:]))
    script = migrate(name, tmp_path, "--keep-cuda") / arguments[0]
    assert losses(on_cpu(script, ranks, arguments[1:])) == original
    report = tmp_path / "report"
    assert losses(on_npu(emulate, script, ranks, arguments[1:], tmp_path, report)) == original
    processes = [json.loads(file.read_text()) for file in report.glob("process-*.json")]
    assert {device for process in processes for device in process["operators"]} == set(map(str, range(ranks)))


def test_mixed_precision_starts_from_nearly_the_same_loss(emulate, tmp_path):
    """The original computes in float32 on a CPU, whatever is asked for."""
    cpu = losses(on_cpu(SAMPLES / "resnet50_imagenet" / "main.py", 1, RESNET50[1:]))
    script = migrate("resnet50_imagenet", tmp_path) / "main.py"
    npu = losses(on_npu(emulate, script, 1, (*RESNET50[1:], "--amp"), tmp_path, tmp_path / "report"))
    assert npu[0] != cpu[0]
    assert npu[0] == pytest.approx(cpu[0], rel=0.01)
    assert len(npu) == len(cpu)
    assert all(math.isfinite(loss) for loss in npu)


def migrate(name: str, folder: Path, *options: str) -> Path:
    command = ["migrate", "-q", "-i", str(SAMPLES / name), "-o", str(folder), "-v", "2.13", *options]
    assert main.run(command) == 0
    return folder / f"{name}_msft"


def on_npu(emulate, script: Path, npus: int, arguments, folder: Path, report: Path) -> str:
    launcher = ("python",) if npus == 1 else ("torchrun", "--standalone", f"--nproc_per_node={npus}")
    options = ("--cpu-random", "--report", str(report))
    done = emulate(*launcher, str(script), *arguments, options=options, cwd=folder)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout + done.stderr


@cache
def on_cpu(script: Path, processes: int, arguments: tuple[str, ...]) -> str:
    """Run a sample with nothing of the emulator, and without torch_npu."""
    command = [sys.executable]
    if processes > 1:
        command += ["-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={processes}"]
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, (SHIM, WITHOUT_NPU))),
        "PYTHONDONTWRITEBYTECODE": "1",
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
        "CUDA_VISIBLE_DEVICES": "",
        "OMP_NUM_THREADS": "1",
    }
    whole = [*command, str(script), *arguments]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(whole, cwd=folder, env=warm(env), capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout + done.stderr


def losses(output: str) -> list[float]:
    """Return the losses that a sample has printed: of its steps, its validation, and at its end."""
    assert "FINAL" in output, output
    return [float(loss) for loss in LOSS.findall(output)]
