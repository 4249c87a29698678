"""``npumigrate doctor`` as a user sees it."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from migrator import language
from migrator.doctor.self_test import run_self_test
from migrator.launch.fault_texts import fault_texts
from tests.emulator.conftest import cache

__all__ = ["cache"]

NO_TORCH_NPU = importlib.util.find_spec("torch_npu") is None
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
    assert "warning: CUDA_VISIBLE_DEVICES=0 is set, but NPUs ignore it" in lines
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


def test_counts_are_in_the_language_of_the_run(
    npumigrate, bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NPUMIGRATE_LANG", "zh")
    language.choose("zh")
    try:
        lines = npumigrate("doctor", "--root", bare).out.splitlines()
    finally:
        language.choose("en")
    assert (lines[0], lines[-1]) == ("0 个 NPU", "3 个错误")


def test_a_plan_is_a_script(npumigrate) -> None:
    answer = npumigrate("doctor", "--plan", "torch 2.8, vllm-ascend, aarch64")
    assert (answer.code, answer.err) == (0, "")
    lines = answer.out.splitlines()
    assert lines[0] == "# Install plan for torch 2.8, vllm-ascend, aarch64 on aarch64"
    assert "pip install vllm==0.13.0" in lines
    assert "# docker pull quay.io/ascend/vllm-ascend:v0.13.0" in lines
    assert subprocess.run(["bash", "-n"], input=answer.out, text=True).returncode == 0


def test_a_plan_that_does_not_meet_all_wishes(npumigrate) -> None:
    answer = npumigrate("doctor", "--plan", "torch 2.7, vllm-ascend 0.18")
    assert answer.code == 1
    assert answer.out.splitlines()[1:3] == [
        "# Not all requests can be met:",
        "#   - vllm-ascend 0.18 is not available; the nearest is vllm-ascend 0.11.0",
    ]
    for given in (["--json"], ["--output-format", "json"]):
        content = json.loads(npumigrate("doctor", "--plan", "torch 2.7, vllm-ascend 0.18", *given).out)
        assert set(content) == {"schema", "arch", "unmet", "parts", "steps", "images"}
        assert content["parts"][0]["name"] == "vllm-ascend"


def test_a_self_test_needs_two_npus(npumigrate, bare: Path) -> None:
    answer = npumigrate("doctor", "--self-test")
    assert answer.code == 1
    assert answer.out.splitlines()[0].startswith("error: the self-test needs 2 NPUs, but 0 are available")


@pytest.mark.skipif(NO_TORCH_NPU, reason="needs torch_npu and the emulator")
def test_two_ranks_on_emulated_npus(npumigrate, cache, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    answer = npumigrate("doctor", "--self-test", "--emulate")
    assert (answer.code, answer.err) == (0, "")
    steps = (
        "import torch_npu",
        "torch.npu.set_device",
        "init_process_group('hccl')",
        "all_reduce",
        "barrier",
    )
    assert answer.out.splitlines() == [*(f"{step}: passed" for step in steps), "no problems found"]


def _fake_python(folder: Path, program: str) -> Path:
    """A Python that runs another program in place of the ranks."""
    (folder / "ranks.py").write_text(program)
    python = folder / "python"
    python.write_text(f"#!/bin/sh\nexec {sys.executable} {folder}/ranks.py\n")
    python.chmod(0o755)
    return python


@pytest.mark.parametrize(
    ("program", "steps", "step", "reason"),
    [
        ("import torch_is_missing", [], "start of Python", "ModuleNotFoundError: No module named"),
        (
            "print('0 import torch_npu')\n"
            "raise ImportError('libhccl.so: cannot open shared object file: No such')",
            [],
            "import torch_npu",
            "libhccl.so: cannot open shared object file: No such (",
        ),
        # One rank is further than the other one, which has failed.
        ("print('0 a\\n1 a\\n0 b\\n1 b\\n0 c'); raise SystemExit(3)", ["a"], "b", "exited with code 3"),
    ],
)
def test_a_self_test_that_fails(
    tmp_path: Path, program: str, steps: list[str], step: str, reason: str
) -> None:
    passed, (fault,) = run_self_test([str(_fake_python(tmp_path, program))])
    assert passed == steps
    assert f"failed in {step}: " in fault.what
    assert reason in fault.what


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--root", "nowhere"], "--root: nowhere: no such file or folder"),
        (["--python", "nowhere"], "--python: nowhere is not a Python environment"),
        (["--json", "--brief"], "--json and --brief cannot be used together"),
        (["--fix"], "no such option: --fix"),
        (["--plan", "torch 2.8 vllm"], "--plan: 'torch 2.8 vllm' is not a requirement"),
        (["--plan", ""], "--plan: give 1 to 8 requirements"),
        (["--plan", "torch", "--brief"], "--plan and --brief cannot be used together"),
        (["--plan", "torch", "--self-test"], "--plan and --self-test cannot be used together"),
        (["--self-test", "--root", "."], "--root and --self-test cannot be used together"),
        (["--emulate"], "--emulate works only with --self-test"),
        (["--self-test", "--emulate", "--python", "nowhere/python"], "--emulate and --python cannot"),
    ],
)
def test_wrong_use_is_one_line(npumigrate, arguments: list[str], said: str) -> None:
    answer = npumigrate("doctor", *arguments)
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err
    assert answer.err.count("\n") == 1
