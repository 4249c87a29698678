"""api_db/composed.csv holds what its programs give."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.data_folders import data_folder

TOOL = Path(__file__).parents[2] / "tools" / "composed.py"


@pytest.mark.thorough
def test_the_table_is_what_the_programs_give(emulate, tmp_path: Path) -> None:
    pytest.importorskip("expecttest")  # torch's samples import it
    command = ["python", str(TOOL), str(tmp_path)]
    done = emulate(*command, options=("--devices", "1", "--report", str(tmp_path / "report")))
    assert done.returncode == 0, done.stderr
    kept = (data_folder("api_db") / "composed.csv").read_text("utf-8").splitlines()
    assert (tmp_path / "composed.csv").read_text("utf-8").splitlines() == kept
