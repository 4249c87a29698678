"""The examples of the rules: each `after` on emulated NPUs, with the values of its `before` on the CPU."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from migrator.data_folders import data_folder
from migrator.files.naming import EQUIVALENTS
from migrator.migrate.added_files import sources
from tests.checking import every_rule
from tests.emulator.conftest import HERE

FUNCTIONS = data_folder("reports") / EQUIVALENTS
PROGRAM = str(HERE / "programs" / "run_examples.py")
MODULES = ("torch", "torch.distributed")
EXAMPLES = {
    f"{rule.code}-{number}": (rule, number, example)
    for rule in every_rule()
    for number, example in enumerate(rule.examples)
    if "after" in example and "file" not in example  # what is no Python does not run there
}
HELP = """
An example has to run by itself: what it lacks goes into its `setup:` or `use:`. One that cannot run says why
in `not_run:`. See "Examples" in docs/rule_format.md."""
DIFFERS = "Where that is what the change is for, say so in its `differs:`."
# What a migration changes in names, in values too.
NAMES = (("ascend_rt_", "cuda_"), ("ascend_", "cuda_"), ("npu", "cuda"), ("cann", "cuda"), ("hccl", "nccl"))


def write(side: str, folder: Path) -> tuple[str, str]:
    examples = {
        name: {"setup": example.get("setup", ""), "text": example[side], "use": example.get("use", "")}
        for name, (_, _, example) in EXAMPLES.items()
        if side == "after" or "not_run" not in example  # what is not compared needs no values
    }
    (folder / "examples.json").write_text(json.dumps(examples))
    return str(folder / "examples.json"), str(folder / "results.json")


@pytest.fixture(scope="module")
def on_npu(emulate, tmp_path_factory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("after")
    files = write("after", folder)
    (folder / EQUIVALENTS).mkdir()
    for name, text in sources(file.stem for file in FUNCTIONS.glob("[!_]*.py")).items():
        (folder / EQUIVALENTS / f"{name}.py").write_text(text)
    done = emulate(
        "python", PROGRAM, *files, *MODULES, "torch_npu", env={"PYTHONPATH": str(folder)}, timeout=900
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(Path(files[1]).read_text())


@pytest.fixture(scope="module")
def on_cpu(emulate, tmp_path_factory) -> dict[str, Any]:
    files = write("before", tmp_path_factory.mktemp("before"))
    env = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, PROGRAM, *files, *MODULES]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(Path(files[1]).read_text())


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name: str, on_npu: dict[str, Any], on_cpu: dict[str, Any]) -> None:
    rule, number, example = EXAMPLES[name]
    trouble = verdict(example, on_npu[name], on_cpu.get(name, {}))
    if trouble:
        pytest.fail(f"{rule.origin}: example {number} of {rule.code} {trouble}", pytrace=False)
    if "not_run" in example:
        pytest.skip(f"{rule.code}-{number}: {example['not_run']}")


def verdict(example: Mapping[str, str], after: dict[str, Any], before: dict[str, Any]) -> str:
    """Return what is wrong with an example, or an empty text."""
    if "not_run" in example:
        return "" if "error" in after else "runs: take its `not_run:` away"
    if "error" in after:
        return f"fails on the NPU (its `after`):\n{after['error']}{HELP}"
    if after["idle"]:
        return f"does not call {', '.join(after['idle'])}; call it in `use:`{HELP}"
    if "error" in before:
        return "does not run on a CPU: take its `differs:` away" if "differs" in example else ""
    found = "\n".join(differences(before, after))
    if "differs" in example:
        return "" if found else "gives the same on CPU and NPU: take its `differs:` away"
    if found:
        return f"gives another result on the NPU than its `before` on the CPU:\n{found}\n{DIFFERS}"
    return ""


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Return what differs, of the variables that both have and the printed text, but for names of devices."""
    both = [name for name in before["values"] if name in after["values"]]
    pairs = [(name, before["values"][name], after["values"][name]) for name in both]
    pairs.append(("printed", before["printed"], after["printed"]))
    return [f"{name}: {one!r}, {other!r}" for name, one, other in pairs if not same(one, other)]


def same(cpu: Any, npu: Any) -> bool:
    if isinstance(cpu, (list, tuple)) and isinstance(npu, (list, tuple)):
        return len(cpu) == len(npu) and all(map(same, cpu, npu))
    if isinstance(cpu, dict) and isinstance(npu, dict):
        return same(list(cpu.items()), list(npu.items()))
    if isinstance(cpu, float) and isinstance(npu, float):
        return math.isclose(cpu, npu, rel_tol=1e-5, abs_tol=1e-6) or (math.isnan(cpu) and math.isnan(npu))
    if isinstance(cpu, str) and isinstance(npu, str):
        return as_cuda(cpu) == as_cuda(npu)
    return bool(cpu == npu)


def as_cuda(text: str) -> str:
    text = text.lower()
    for npu, cuda in NAMES:
        text = text.replace(npu, cuda)
    return text
