"""The sample for MindSpore is migrated to Ascend as a whole: what is left speaks of no GPU."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from migrator.cli.main import run

SAMPLE = Path(__file__).parents[2] / "samples" / "mindspore_resnet50"
OF_GPUS = re.compile(r"[\"'=]GPU\b|nccl|mpirun|CUDA_VISIBLE_DEVICES")


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("out")
    assert run(["migrate", str(SAMPLE), "-o", str(out), "-v", "2.6", "-q"]) == 0
    return out / f"{SAMPLE.name}_msft"


def code_of(folder: Path) -> dict[str, str]:
    return {
        file.relative_to(folder).as_posix(): re.sub(r"(?m)#.*", "", file.read_text())
        for file in sorted(folder.rglob("*"))
        if file.suffix in (".py", ".sh", ".yaml") and "migration_report" not in file.parts
    }


def test_nothing_asks_for_gpus(result: Path) -> None:
    before, after = code_of(SAMPLE), code_of(result)
    assert before.keys() == after.keys()
    assert {name for name, text in before.items() if OF_GPUS.search(text)} == {
        *("config.py", "config.yaml", "train.py"),
        *(f"scripts/run_{what}_gpu.sh" for what in ("distribute_train", "eval", "standalone_train")),
    }
    assert [name for name, text in after.items() if OF_GPUS.search(text)] == []
    assert "torch" not in "".join(after.values())


def test_msrun_starts_the_ranks(result: Path) -> None:
    script = result / "scripts" / "run_distribute_train_gpu.sh"
    text = script.read_text()
    start = "msrun --worker_num=$DEVICE_NUM --local_worker_num=$DEVICE_NUM --log_dir=log_output --join=True python train.py"
    assert f"{start} --device_target=Ascend --run_distribute=True" in text
    assert "export ASCEND_RT_VISIBLE_DEVICES=${ASCEND_RT_VISIBLE_DEVICES:-0,1,2,3,4,5,6,7}" in text
    assert subprocess.run(["bash", "-n", script]).returncode == 0


def test_what_is_left_to_a_person(result: Path) -> None:
    summary = json.loads((result / "migration_report" / "summary.json").read_text())
    assert summary["frameworks"] == {"mindspore": 4}
    assert set(summary["findings"]["by_rule"]) == {"NPU1221"}  # the package


def test_a_second_migration_changes_nothing(result: Path, tmp_path: Path) -> None:
    assert run(["migrate", str(result), "-o", str(tmp_path), "-v", "2.6", "-q"]) == 0
    assert code_of(tmp_path / f"{result.name}_msft") == code_of(result)
