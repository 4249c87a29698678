"""Packages are read, never imported."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from migrator.doctor.machine import Package, python_at, running_python


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """A virtual environment with packages that would fail if they were imported."""
    site = tmp_path / "venv" / "lib" / "python3.10" / "site-packages"
    more = tmp_path / "more"
    for folder, name, version, requires in (
        (site, "torch", "2.6.0+cpu", ["filelock"]),
        (site, "torch_npu", "2.6.0.post3", ["torch==2.6.0+cpu"]),
        (site, "torchvision", "0.21.0", ["numpy", "torch (==2.6.0)"]),
        (more, "torchaudio", "2.6.0", ["torch==2.6.0.*"]),
    ):
        info = folder / f"{name}-{version}.dist-info"
        info.mkdir(parents=True)
        lines = [f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: {version}"]
        lines += [f"Requires-Dist: {one}" for one in requires]
        (info / "METADATA").write_text("\n".join(lines) + "\n")
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text("raise SystemExit('imported')\n")
    (site / "code.pth").write_text(f"import os; os._exit(9)\n# a comment\n{more}\n")
    (tmp_path / "venv" / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.10.4\n")
    (tmp_path / "venv" / "bin").mkdir()
    (tmp_path / "venv" / "bin" / "python").symlink_to(sys.executable)
    return tmp_path / "venv"


def test_packages_of_an_environment(environment: Path) -> None:
    expected = {
        "torch": Package("2.6.0+cpu"),
        "torch_npu": Package("2.6.0.post3", "2.6.0"),
        "torchvision": Package("0.21.0", "2.6.0"),
        "torchaudio": Package("2.6.0", "2.6.0"),
    }
    for path in (environment, environment / "bin" / "python"):
        found = python_at(path)
        assert (found.version, found.packages) == ("3.10.4", expected)


def test_ascends_apex_is_told_by_its_optimizers(environment: Path) -> None:
    info = environment / "lib/python3.10/site-packages/apex-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: apex\nVersion: 0.1\n")
    (info / "RECORD").write_text("apex/optimizers/fused_adam.py,,\n")
    assert python_at(environment).packages["apex"] == Package("0.1")
    (info / "RECORD").write_text("apex/optimizers/npu_fused_adam.py,,\n")
    assert python_at(environment).packages["apex"] == Package("0.1", for_npu=True)


def test_a_package_without_a_version_is_none(environment: Path) -> None:
    (environment / "lib/python3.10/site-packages/torch-2.6.0+cpu.dist-info/METADATA").write_text(
        "Name: torch\n"
    )
    assert "torch" not in python_at(environment).packages


def test_what_is_no_environment_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not a Python environment"):
        python_at(tmp_path)


def test_the_running_python() -> None:
    found = running_python()
    assert found.version == ".".join(map(str, sys.version_info[:3]))
    assert set(found.packages) <= {"torch", "torch_npu", "torchvision", "torchaudio", "apex"}
