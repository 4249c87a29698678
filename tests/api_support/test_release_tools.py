"""``python -m tools.releases`` and its checks as a maintainer starts them."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from migrator.api_support import tables
from migrator.api_support.answer import look_up
from migrator.data_folders import data_folder
from tests.api_support.wheel_files import npu_wheel
from tools.releases import live, writing
from tools.releases.__main__ import main

NO_TORCH_NPU = importlib.util.find_spec("torch_npu") is None


@pytest.fixture(autouse=True)
def afresh(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Tables are looked for anew."""
    monkeypatch.delenv(tables.VARIABLE, raising=False)
    tables.in_force.cache_clear()
    yield monkeypatch
    tables.in_force.cache_clear()


def build(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


def test_build_into_a_folder_and_use_it(tmp_path: Path, capsys) -> None:
    out = tmp_path / "tables"
    assert build("--wheel", npu_wheel(tmp_path), "--out", out) == 0
    told = capsys.readouterr().out
    assert "torch_npu 2.15.0: 2 names, 4 kernels, 1 operators of its own" in told
    assert f"NPUMIGRATE_API_DB={out}" in told
    checked = subprocess.run([sys.executable, "-m", "tools.releases.check", out], check=False)
    assert checked.returncode == 0
    assert writing.records("releases", out)[-1] == {
        **dict.fromkeys(writing.COLUMNS["releases"].split(), ""),
        "torch_npu": "2.15.0",
        "torch": "2.15.0",
        "source": "torch_npu wheel",
    }
    assert look_up("torch_npu.npu_magic") is None  # the tables in use did not change
    assert sorted(path.name for path in out.iterdir()) == sorted(
        path.name for path in data_folder("api_db").iterdir() if path.name != "errors"
    )


def test_wheels_that_cannot_be_added(tmp_path: Path, capsys) -> None:
    out = tmp_path / "tables"
    wrong = tmp_path / "wrong.whl"
    wrong.write_text("no wheel")
    for arguments, said in (
        (["--wheel", wrong], "wrong.whl cannot be read"),
        (["--wheel", tmp_path / "none.whl"], "No such file"),
        (["--version", "newest"], "is no torch_npu release"),
    ):
        assert build(*arguments, "--out", out) == 2
        assert said in capsys.readouterr().err.splitlines()[-1]
        assert not out.exists()
    with pytest.raises(SystemExit, match="2"):
        build("--out", out)
    assert "give --wheel" in capsys.readouterr().err


def test_a_folder_with_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("mine")
    assert build("--wheel", npu_wheel(tmp_path), "--out", tmp_path / "out") == 2
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["thesis.txt"]


def test_the_check_names_a_wrong_word(tmp_path: Path) -> None:
    shutil.copytree(data_folder("api_db"), tmp_path / "api_db")
    path = tmp_path / "api_db" / "env_vars.csv"
    path.write_text(path.read_text().replace("ASCEND_LAUNCH_BLOCKING,yes", "ASCEND_LAUNCH_BLOCKING,maybe"))
    checked = subprocess.run(
        [sys.executable, "-m", "tools.releases.check", tmp_path / "api_db"],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert checked.returncode == 1
    assert "env_vars.csv: CUDA_LAUNCH_BLOCKING: same_values is 'maybe', not one of no, yes" in checked.stdout


@pytest.mark.thorough
@pytest.mark.skipif(NO_TORCH_NPU, reason="needs torch_npu and the emulator")
def test_the_live_package_agrees(capsys) -> None:
    code = live.main()
    out = capsys.readouterr().out
    assert code == 0, out
    assert "the installed torch_npu has the names and kernels listed in the tables" in out


@pytest.mark.skipif(not NO_TORCH_NPU, reason="torch_npu is installed")
def test_there_is_nothing_to_compare_with(capsys) -> None:
    assert live.main() == 2
    assert "torch_npu is not installed" in capsys.readouterr().err
