"""``npumigrate doctor`` as a user sees it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from migrator.launch.fault_texts import fault_texts

FOUND = "ASCEND_HOME_PATH CUDA_VISIBLE_DEVICES RANK_TABLE_FILE NPUMIGRATE_EMULATOR LD_LIBRARY_PATH"


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with nothing of CANN."""
    for name in FOUND.split():
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/me")
    root = tmp_path / "root"
    root.mkdir()
    return root


def test_faults_are_shown_with_what_to_do(npumigrate, bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    answer = npumigrate("doctor", "--root", bare)
    assert (answer.code, answer.err) == (1, "")
    head, *lines = answer.out.splitlines()
    assert head == "0 NPUs"
    assert lines[0] == f"error: {fault_texts()['set-env-missing'].what}"
    assert lines[1] == f"  {fault_texts()['set-env-missing'].do}"
    assert "warning: CUDA_VISIBLE_DEVICES=0 is set, and NPUs do not follow it" in lines
    assert lines[-1] == "3 errors, 1 warning"


def test_one_line_and_json(npumigrate, bare: Path) -> None:
    brief = npumigrate("doctor", "--root", bare, "--brief")
    assert (brief.code, brief.out) == (1, fault_texts()["set-env-missing"].line() + "\n")
    answer = npumigrate("doctor", "--root", bare, "--json")
    content = json.loads(answer.out)
    assert answer.code == 1
    assert [one["name"] for one in content["faults"]] == ["set-env-missing", "no-device", "driver-missing"]
    assert set(content["faults"][0]) == {"name", "severity", "what", "do"}
    assert (content["schema"], content["npus"], content["python"]) == (1, [], None)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--root", "nowhere"], "--root: no such folder: nowhere"),
        (["--python", "nowhere"], "--python: nowhere is no Python environment"),
        (["--json", "--brief"], "--json and --brief cannot be used together"),
        (["--fix"], "No such option"),
    ],
)
def test_wrong_use_is_one_line(npumigrate, arguments: list[str], said: str) -> None:
    answer = npumigrate("doctor", *arguments)
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err
    assert answer.err.count("\n") == 1
