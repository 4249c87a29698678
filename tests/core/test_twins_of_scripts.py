"""A script for GPUs beside which there is one for NPUs stays, as a Python file does."""

from __future__ import annotations

import csv
from pathlib import Path

from migrator.cli.main import run

TEXT = "export CUDA_VISIBLE_DEVICES=0\nexport CUBLAS_WORKSPACE_CONFIG=:4096:8\npython train.py\n"


def test_only_the_script_without_a_twin_changes(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "train.py").write_text("import torch\n")
    for name in ("run_gpu.sh", "run_npu.sh", "eval_gpu.sh"):
        (project / name).write_text(TEXT)
    assert run(["migrate", str(project), "-o", str(tmp_path), "-v", "2.6", "-q"]) == 0
    result = tmp_path / "project_msft"
    assert (result / "run_gpu.sh").read_text() == TEXT
    assert "ASCEND_RT_VISIBLE_DEVICES" in (result / "eval_gpu.sh").read_text()
    with open(result / "migration_report" / "manual_review.csv", encoding="utf-8-sig", newline="") as file:
        rows = {row["Rule"]: row["Message"] for row in csv.DictReader(file) if row["File"] == "run_gpu.sh"}
    assert "the project has a separate file for NPUs" in rows["NPU410"]
    assert "left unchanged" not in rows["NPU411"]  # it has no fix
