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
    file = tmp_path / "verdict.json"
    options = (str(tmp_path / f"{name}_msft"), "--compare-cpu", "--tolerance", "1e-6", "--timeout", "100")
    done = emulate(
        *launcher,
        *arguments,
        str(tmp_path / "out"),
        options=(*options, "--json", str(file)),
        how="verify",
        env={"PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    verdict = json.loads(file.read_text())
    assert list(verdict["operators"]) == npus
    assert all(work["aten::convolution_backward"] > 50 for work in verdict["operators"].values())
    assert verdict["npu_share"]["backward"] == verdict["npu_share"]["forward"] == 1
    assert verdict["cuda_reached"] == []
    compared = verdict["original"]["comparison"]["compared"]
    assert any(line["original"].startswith("FINAL") for line in compared)
