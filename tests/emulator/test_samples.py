"""The samples: migrated and trained on emulated NPUs, with the losses of the originals on the CPU."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from migrator.cli import main

SAMPLES = Path(__file__).parents[2] / "samples"
SMALL = ("--synthetic", "--epochs", "1", "--batch-size", "4", "--workers", "0")
TWO = ("torchrun", "--standalone", "--nproc_per_node=2")


@pytest.mark.parametrize(
    ("name", "launcher", "arguments", "npus"),
    [
        (
            "resnet18_cifar",
            ("python",),
            ("train.py", *SMALL, "--steps", "3", "--lr", "0.01", "--checkpoint-dir"),
            ["0"],
        ),
        (
            "mobilenetv3_single",
            ("python",),
            ("train.py", *SMALL, "--steps", "3", "--image-size", "64", "--no-amp", "--output-dir"),
            ["0"],
        ),
        (
            "resnet50_imagenet",
            TWO,
            ("main.py", *SMALL, "--steps", "2", "--image-size", "64", "--seed", "0", "--output-dir"),
            ["0", "1"],
        ),
    ],
)
def test_sample(emulate, tmp_path, name, launcher, arguments, npus):
    assert main.run(["migrate", "-q", "-i", str(SAMPLES / name), "-o", str(tmp_path), "-v", "2.13"]) == 0
    results = []
    for folder, report in ((SAMPLES / name, tmp_path / "cpu"), (tmp_path / f"{name}_msft", tmp_path / "npu")):
        done = emulate(
            *launcher,
            *arguments,
            str(report / "out"),
            options=("--cpu-random", "--report", str(report)),
            cwd=folder,
            env={"PYTHONDONTWRITEBYTECODE": "1"},
            timeout=90,
        )
        # The original may hang after its last line: a destructor of torch 2.13's gloo holds
        # Python's lock and waits for a thread that wants it. Only its numbers are of interest.
        if folder != SAMPLES / name:
            assert done.returncode == 0, done.stderr[-3000:]
        assert "FINAL" in done.stdout, done.stderr[-3000:]
        results.append(next(line for line in done.stdout.splitlines() if line.startswith("FINAL")))
    cpu, npu = results
    assert npu == cpu
    assert ran_on(tmp_path / "cpu") == {}
    work = ran_on(tmp_path / "npu")
    assert sorted(work) == npus
    assert all(count > 50 for count in work.values()), work


def ran_on(report: Path) -> dict[str, int]:
    """How many derivatives of convolutions ran on each NPU."""
    counts: dict[str, int] = {}
    for file in report.glob("process-*.json"):
        for device, operators in json.loads(file.read_text())["operators"].items():
            counts[device] = operators["aten::convolution_backward"]
    return counts
