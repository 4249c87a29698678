"""api_db/composed.csv holds what its programs give."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.api_support.derive import composed
from migrator.data_folders import data_folder


def test_the_table_is_what_the_programs_give(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert composed.main(tmp_path) == 0, capfd.readouterr().err
    kept = (data_folder("api_db") / "composed.csv").read_text("utf-8").splitlines()
    assert (tmp_path / "composed.csv").read_text("utf-8").splitlines() == kept
