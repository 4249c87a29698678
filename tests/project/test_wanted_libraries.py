"""The versions that a project's files ask for of libraries."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from migrator.api_support.library_defaults import Limits
from migrator.project.wanted_versions import lines_with_versions, wanted_libraries


def wanted(folder: Path) -> Mapping[str, Limits]:
    return wanted_libraries(tuple(lines_with_versions(folder)))


@pytest.mark.parametrize(
    ("file", "line", "limits"),
    [
        ("requirements.txt", "timm==0.4.12", (("==", (0, 4, 12)),)),
        ("requirements.txt", "Timm >= 0.4, < 0.6  # of the paper", ((">=", (0, 4)), ("<", (0, 6)))),
        ("setup.py", "install_requires=['torch==1.8.1', 'timm==0.3.2'],", (("==", (0, 3, 2)),)),
        ("environment.yml", "  - timm=0.5.4", (("=", (0, 5, 4)),)),
        ("INSTALL.md", "pip install timm==0.3.2 tensorboardX six", (("==", (0, 3, 2)),)),
        ("README.md", "Results are with `timm==0.3.2`.", None),
        ("requirements.txt", "timm", None),
        ("requirements.txt", "my-timm==0.3.2", None),
        ("requirements.txt", "# timm==0.3.2", None),
        ("notes.txt", "timm==0.3.2", None),
    ],
)
def test_the_limits_of_a_line(tmp_path: Path, file: str, line: str, limits: object) -> None:
    (tmp_path / file).write_text(f"{line}\n")
    assert wanted(tmp_path).get("timm") == limits


def test_requirements_come_before_guides(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("pip install timm==0.3.2 face_alignment==1.3.5\n")
    (tmp_path / "requirements.txt").write_text("timm==0.9.16\n")
    assert wanted(tmp_path) == {
        "timm": (("==", (0, 9, 16)),),
        "face-alignment": (("==", (1, 3, 5)),),
    }


def test_a_folder_without_them(tmp_path: Path) -> None:
    assert wanted(tmp_path / "missing") == {}
