"""Before of each change of a conversion stands in the input, After in the result."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from migrator.cli.main import run

SAMPLES = Path(__file__).parents[2] / "samples"


def lines(file: Path) -> set[str]:
    return {line.strip() for line in file.read_text(encoding="utf-8").splitlines()}


@pytest.mark.parametrize("sample", ["resnet18_cifar", "mobilenetv3_single"])
def test_rows_are_read(tmp_path: Path, sample: str) -> None:
    source = SAMPLES / sample
    assert run(["-i", str(source), "-o", str(tmp_path), "-v", "2.6", "-q", "--distributed"]) == 0
    (result,) = tmp_path.iterdir()
    with (result / "migration_report" / "change_list.csv").open(encoding="utf-8-sig", newline="") as table:
        rows = [row for row in csv.DictReader(table) if row["Rule"] == "NPU920"]
    assert len(rows) > 3
    for row in rows:
        before = {line.strip() for line in row["Before"].splitlines() if line.strip()}
        after = {line.strip() for line in row["After"].splitlines() if line.strip()}
        assert before <= lines(source / row["File"])
        assert after <= lines(result / row["File"])
        assert bool(before) == (row["Operation Type"] != "INSERT")
