"""--hw of migrate and analyze."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.cli.main import run
from tests.reading import rows


@pytest.mark.parametrize("command", ["migrate", "analyze"])
def test_unknown_hardware_is_refused(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.py").write_text("import torch\n")
    arguments = ["-i", str(tmp_path / "a.py"), "-o", str(tmp_path / "out"), "-v", "2.7.1"]
    assert run([command, *arguments, "--hw", "910"]) == 2
    error = capsys.readouterr().err
    assert error == "npumigrate: there is no hardware '910': choose one of A1, A2, A3, 950DT\n"
    assert not (tmp_path / "out").exists()


def test_analyze_judges_for_the_hardware(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import torch\nlayer = torch.nn.Linear(2, 2)\n")

    def apis(name: str, *options: str) -> list[str]:
        arguments = ["-i", str(tmp_path / "a.py"), "-o", str(tmp_path / name), "-v", "2.7.1", "-q"]
        assert run(["analyze", *arguments, *options]) == 0
        return [row["OP"] for row in rows(tmp_path / name / "a_analysis", "unsupported_api")]

    assert apis("plain") == apis("a2", "--hw", "A2") == []
    assert apis("950", "--hw", "950DT") == ["torch.nn.Linear"]
