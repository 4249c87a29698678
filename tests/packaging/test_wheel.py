"""The wheel: built, installed into a fresh environment, and run from another folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DATA = ["api_db", "reports", "rules"]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return folder


def test_the_wheel_holds_the_package_and_its_data(built) -> None:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    for folder in DATA:
        expected = {
            f"migrator/data/{folder}/{path.name}" for path in (ROOT / folder).iterdir() if path.is_file()
        }
        assert expected
        assert expected <= set(names)
    packages = {name.split("/")[0] for name in names}
    assert {name for name in packages if not name.endswith(".dist-info")} == {"migrator"}
    assert not [name for name in names if "__pycache__" in name]


def test_the_sdist_holds_what_the_tests_need(built) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for file in ["pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "rules", "reports/columns.yaml"]:
        assert any(name == file or name.startswith(file + "/") for name in names), file
    assert "samples/resnet50_imagenet/main.py" in names
    assert "tests/packaging/test_wheel.py" in names
    assert "tools/lint_documents.py" in names


@pytest.mark.thorough  # pre-commit's own test installs it every day
def test_the_installed_command_migrates_a_sample(built, tmp_path) -> None:
    environment = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    programs = environment / ("Scripts" if os.name == "nt" else "bin")
    (wheel,) = built.glob("*.whl")
    install = [
        str(programs / "python"),
        "-m",
        "pip",
        "install",
        "-q",
        "--no-compile",
        "--disable-pip-version-check",
        str(wheel),
    ]
    subprocess.run(install, check=True)

    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(ROOT / "samples" / "resnet50_imagenet", elsewhere / "resnet50_imagenet")
    command = [str(programs / "npumigrate"), "-i", "resnet50_imagenet", "-o", "out", "-v", "2.6"]
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    answer = subprocess.run(command, cwd=elsewhere, env=clean, capture_output=True, text=True)
    assert (answer.returncode, answer.stderr) == (0, "")
    migrated = (elsewhere / "out" / "resnet50_imagenet_msft" / "main.py").read_text(encoding="utf-8")
    assert "import torch_npu" in migrated
    assert "hccl" in migrated
