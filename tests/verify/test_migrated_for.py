"""The torch that a project was migrated for."""

from __future__ import annotations

from pathlib import Path

from migrator.cli import main
from migrator.verify.run import migrated_for


def test_the_reports_know_it(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "train.py").write_text("import torch\n")
    assert main.run(["migrate", "-q", "-i", str(tmp_path / "p"), "-o", str(tmp_path), "-v", "1.11"]) == 0
    assert migrated_for(tmp_path / "p_msft") == "1.11.0"


def test_without_reports_it_is_not_known(tmp_path: Path) -> None:
    assert migrated_for(tmp_path) == ""
    (tmp_path / "migration_report").mkdir()
    for text in ("{", "[]", "{}"):
        (tmp_path / "migration_report" / "summary.json").write_text(text)
        assert migrated_for(tmp_path) == ""
