"""``npumigrate db`` as a user sees it."""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path

import pytest

from migrator.api_support import tables
from migrator.data_folders import data_folder
from tests.api_support.wheel_files import npu_wheel

NO_TORCH_NPU = importlib.util.find_spec("torch_npu") is None


@pytest.fixture
def afresh(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Tables are looked for anew; nothing of this machine's user is in the way."""
    monkeypatch.delenv(tables.VARIABLE, raising=False)
    tables.in_force.cache_clear()
    yield monkeypatch
    tables.in_force.cache_clear()


def test_build_into_a_folder_and_use_it(npumigrate, tmp_path: Path, afresh) -> None:
    out = tmp_path / "tables"
    answer = npumigrate("db", "build", "--wheel", npu_wheel(tmp_path), "--out", out)
    assert answer.code == 0, answer.err
    assert "torch_npu 2.15.0: 2 names, 4 kernels, 1 operators of its own" in answer.out
    assert f"NPUMIGRATE_API_DB={out}" in answer.out
    assert npumigrate("db", "verify", out).code == 0
    assert tables.records("releases", out)[-1] == {
        **dict.fromkeys(tables.COLUMNS["releases"].split(), ""),
        "torch_npu": "2.15.0",
        "torch": "2.15.0",
        "source": "torch_npu wheel",
    }
    assert npumigrate("api", "torch_npu.npu_magic").code == 1
    assert sorted(path.name for path in out.iterdir()) == sorted(
        path.name for path in data_folder("api_db").iterdir()
    )


def test_wheels_that_cannot_be_added(npumigrate, tmp_path: Path, afresh) -> None:
    out = tmp_path / "tables"
    wrong = tmp_path / "wrong.whl"
    wrong.write_text("no wheel")
    for arguments, said in (
        ([], "--wheel"),
        (["--wheel", wrong], "wrong.whl cannot be read"),
        (["--wheel", tmp_path / "none.whl"], "No such file"),
        (["--version", "newest"], "is no torch_npu release"),
    ):
        answer = npumigrate("db", "build", *arguments, "--out", out)
        assert answer.code == 2
        assert said in answer.err.splitlines()[-1]
        assert not out.exists()


def test_a_folder_with_other_things_is_left_alone(npumigrate, tmp_path: Path, afresh) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("mine")
    answer = npumigrate("db", "build", "--wheel", npu_wheel(tmp_path), "--out", tmp_path / "out")
    assert answer.code == 2
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["thesis.txt"]


def test_diff(npumigrate, afresh) -> None:
    answer = npumigrate("db", "diff", "2.12", "2.13")
    assert answer.code == 0
    assert "  - torch.cuda.MemPoolContext  torch.npu.MemPoolContext" in answer.out
    assert "Operators with an NPU kernel: 0 new, 28 gone, 0 changed" in answer.out
    content = json.loads(npumigrate("db", "diff", "2.12", "2.13", "--json").out)
    assert {change["about"] for change in content["changes"]} == {
        "name",
        "own",
        "kernel",
        "document",
        "torch",
    }
    assert content["from"] == {"torch": "2.12.0", "torch_npu": "2.12.0.post3"}


def test_diff_shows_the_names_of_torch_that_came_and_went(npumigrate, afresh) -> None:
    told = npumigrate("db", "diff", "1.11", "2.1").out.partition("Names of torch: ")[2].splitlines()
    assert len(told) == 62
    assert told[-1].endswith("more: --json has all")
    content = json.loads(npumigrate("db", "diff", "1.11", "2.1", "--json").out)
    names = {change["name"]: change["after"] for change in content["changes"] if change["about"] == "torch"}
    assert names["torch.compile"] == "in torch"
    # What lies in a module that came is not told by itself.
    assert not any(name.startswith("torch.fx.experimental.validator.") for name in names)


def test_diff_of_what_is_not_documented(npumigrate, afresh) -> None:
    answer = npumigrate("db", "diff", "2.13", "2.14")
    assert "There are no documents of torch 2.14.0" in answer.out
    assert "Documents: not compared" in answer.out


@pytest.mark.parametrize("arguments", [["2.12"], ["2.12", "0.1"], ["2.12", "2.12.0"]])
def test_diff_wrong_use(npumigrate, afresh, arguments) -> None:
    answer = npumigrate("db", "diff", *arguments)
    assert answer.code == 2
    assert len(answer.err.splitlines()) == 1


def test_verify(npumigrate, tmp_path: Path, afresh) -> None:
    assert npumigrate("db", "verify", "--no-live").code == 0
    shutil.copytree(data_folder("api_db"), tmp_path / "api_db")
    path = tmp_path / "api_db" / "env_vars.csv"
    path.write_text(path.read_text().replace("ASCEND_LAUNCH_BLOCKING,yes", "ASCEND_LAUNCH_BLOCKING,maybe"))
    answer = npumigrate("db", "verify", tmp_path / "api_db")
    assert answer.code == 1
    assert "env_vars.csv: CUDA_LAUNCH_BLOCKING: same_values is 'maybe', not one of no, yes" in answer.out
    assert npumigrate("db", "verify", tmp_path / "nowhere").code == 2


def test_a_wrong_variable_is_one_line(npumigrate, tmp_path: Path, afresh) -> None:
    afresh.setenv(tables.VARIABLE, str(tmp_path))
    answer = npumigrate("db", "verify")
    assert answer.code == 2
    assert "NPUMIGRATE_API_DB" in answer.err


@pytest.mark.skipif(NO_TORCH_NPU, reason="needs torch_npu and the emulator")
def test_the_live_package_agrees(npumigrate, afresh) -> None:
    answer = npumigrate("db", "verify", "--live")
    assert answer.code == 0, answer.out
    assert "the installed torch_npu has the names and kernels listed in the tables" in answer.out


@pytest.mark.skipif(not NO_TORCH_NPU, reason="torch_npu is installed")
def test_live_without_torch_npu(npumigrate, afresh) -> None:
    answer = npumigrate("db", "verify", "--live")
    assert answer.code == 2
    assert "torch_npu is not installed" in answer.err


def test_releases_that_belong_together_are_shown(npumigrate) -> None:
    answer = npumigrate("db", "releases", "2.6")
    assert answer.code == 0
    head, *rows = (line.split() for line in answer.out.splitlines())
    assert head[:2] == ["torch_npu", "torch"]
    assert ["2.6.0.post3", "2.6.0", "3.9-3.11", "0.21.0", "2.6.0", "8.3.RC1", "0.1+ascend"] in rows
    assert {row[1] for row in rows} == {"2.6.0"}
    shown = json.loads(npumigrate("db", "releases", "--json").out)
    assert {one["torch"] for one in shown} > {"1.8.1", "2.6.0", "2.14.0"}
    unknown = npumigrate("db", "releases", "2.6.5")
    assert (unknown.code, unknown.out) == (1, "")
    assert "2.6.5" in unknown.err
