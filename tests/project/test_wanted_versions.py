"""The version that a project's requirements ask for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from migrator.api_support.libraries import Limits
from migrator.api_support.versions import newest
from migrator.project.wanted_versions import (
    chosen_version,
    limits_hold,
    lines_with_versions,
    wanted_libraries,
    wanted_of,
)


@pytest.mark.parametrize(
    ("file", "line", "version"),
    [
        ("requirements.txt", "torch==2.1.2", "2.1.0"),
        ("requirements.txt", "torch == 1.11.0+cu113  # the one of the paper", "1.11.0"),
        ("requirements.txt", "torch===2.4.0", "2.4.0"),
        ("requirements.txt", "torch~=2.6.0", "2.6.0"),
        ("requirements.txt", "torch[opt-einsum]==2.3.1", "2.3.1"),
        (
            "requirements.txt",
            "torch @ https://host/whl/cu118/torch-2.1.0%2Bcu118-cp310-cp310-linux_x86_64.whl",
            "2.1.0",
        ),
        ("requirements.txt", "torch>=1.8,<2.5", "2.4.0"),
        ("requirements.txt", "torch>=2.1, <=2.3", "2.3.1"),
        ("requirements.txt", "torch<1.9", "1.8.1"),
        ("requirements.txt", "torch>=1.7", None),
        ("requirements.txt", "torch", None),
        ("requirements-gpu.txt", "torch==2.5.1", "2.5.1"),
        ("requirements/train.txt", "torch==2.5.1", "2.5.1"),
        ("pyproject.toml", 'dependencies = ["numpy", "torch==2.6.0", "tqdm"]', "2.6.0"),
        ("pyproject.toml", 'torch = "^2.1"', "2.1.0"),
        ("pyproject.toml", 'torch = {version = "2.1.0", source = "cu118"}', "2.1.0"),
        ("pyproject.toml", 'torch = { index = "pytorch-cpu" }', None),
        ("setup.cfg", "    torch==1.8.1", "1.8.1"),
        ("setup.py", "install_requires=['numpy>=1.2', 'torch==1.8.1', 'tqdm'],", "1.8.1"),
        ("environment.yml", "  - pytorch=1.11.0=py3.9_cuda11.3_cudnn8.2.0_0", "1.11.0"),
        ("environment.yml", "  - pytorch::pytorch==2.1.0", "2.1.0"),
        ("environment.yaml", "  - pytorch-cuda=11.8", None),
        ("requirements.txt", "torchvision==0.16.0", None),
        ("requirements.txt", "pytorch-lightning==1.9.0", None),
        ("requirements.txt", "# torch==2.1.0", None),
        ("requirements.txt", "torch==2.1.0; sys_platform == 'darwin'", None),
        ("README.txt", "torch==2.1.0", None),
        ("run.sh", "pip install torch==2.1.0", "2.1.0"),
        ("run.sh", "echo torch==2.1.0", None),
        ("a.ipynb", r'    "!pip install torch==2.1.0\n",', "2.1.0"),
        ("a.ipynb", r'    "print(torch==2.1)\n",', None),
    ],
)
def test_one_line(tmp_path: Path, file: str, line: str, version: str | None) -> None:
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"numpy\n{line}\n")
    found = chosen_version(tmp_path)
    assert found.version == (version or newest().text)
    assert (f"{file}:2" in found.why) is (version is not None or ">=" in line)


def test_a_torch_without_torch_npu_becomes_the_next_newer_one(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch==1.9.0\n")
    found = chosen_version(tmp_path)
    assert found.version == "1.11.0"
    assert (
        found.why
        == "requirements.txt:1 has torch==1.9.0, which has no torch_npu; this is the nearest version"
    )
    (tmp_path / "requirements.txt").write_text("torch==99.0\n")
    assert chosen_version(tmp_path).version == newest().text


def test_a_pin_comes_before_a_range(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch>=1.7\n")
    (tmp_path / "setup.py").write_text("setup(install_requires=['torch==2.1.0'])\n")
    assert chosen_version(tmp_path).version == "2.1.0"


@pytest.mark.parametrize(
    ("own", "version"),
    [("torch>=1.13.1", newest().text), ("torch>=1.8,<2", "1.8.1"), ("torch>=1.13.1,<2.5", "2.4.0")],
)
def test_a_pin_that_the_package_excludes_is_of_another_time(tmp_path: Path, own: str, version: str) -> None:
    (tmp_path / "requirements.txt").write_text("torch==1.8.1\n")
    (tmp_path / "pyproject.toml").write_text(f'dependencies = ["{own}"]\n')
    assert chosen_version(tmp_path).version == version


def test_a_range_of_another_list_excludes_no_pin(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch==2.1.0\n")
    (tmp_path / "environment.yml").write_text("  - pytorch>=2.4\n")
    assert chosen_version(tmp_path).version == "2.1.0"


def test_one_file_belongs_to_its_folder(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_bytes(b"\xff\ntorch==2.4.0\n")
    (tmp_path / "train.py").touch()
    assert chosen_version(tmp_path / "train.py").version == "2.4.0"


def test_what_another_file_of_pip_names_counts(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("-r deps/base.txt\ntorchvision\n")
    (tmp_path / "deps").mkdir()
    (tmp_path / "deps/base.txt").write_text("-c ../requirements.txt\ntorch==2.1.0\n-r missing.txt\n")
    assert chosen_version(tmp_path) == ("2.1.0", "deps/base.txt:2 has torch==2.1.0")


@pytest.mark.parametrize(
    ("line", "holds"),
    [
        ("transformers==4.46.3", True),
        ("transformers~=4.40", True),
        ("transformers>=4.40,<4.51", True),
        ("transformers==4.51.0", False),
        ("transformers>=4.51", False),
        ("transformers<4.36", False),
        ("transformers>=4.40", None),
        ("transformers<5", None),
    ],
)
def test_conditions_of_a_library(line: str, holds: bool | None) -> None:
    limits = wanted_of((line,), frozenset({"transformers"}))["transformers"]
    assert limits_hold(">=4.36,<4.51", limits) is holds


def test_another_library_names_no_version() -> None:
    assert not wanted_of(("sentence-transformers==4.1", "my_transformers==1"), frozenset({"transformers"}))


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
    assert wanted(tmp_path) == {"timm": (("==", (0, 9, 16)),), "face-alignment": (("==", (1, 3, 5)),)}


def test_a_folder_without_them(tmp_path: Path) -> None:
    assert wanted(tmp_path / "missing") == {}


def test_no_library_is_asked_for() -> None:
    assert wanted_of(("'retry==0.9.2',", "torch"), frozenset()) == {}
