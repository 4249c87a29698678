"""The examples of the rules: each `after` on emulated NPUs, with the values of its `before` on the CPU.

What --keep-cuda makes of them runs on emulated NPUs, and on a CPU without torch_npu.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Mapping
from functools import partial
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
EXAMPLES = {
    f"{rule.code}-{number}": (rule, number, example)
    for rule in every_rule()
    for number, example in enumerate(rule.examples)
    if "after" in example and "file" not in example  # what is no Python does not run there
}
KEPT = {
    f"{rule.code}-{number}": example
    for rule in every_rule()
    for number, example in enumerate(rule.examples)
    if "keep_cuda" in example and "not_run" not in example
}
RENAMED = ("NPU114-0",)  # its `use` calls the method by the name that a migration gives it
NEED_CUDA = {
    "NPU152-0": "the capability of a device",
    "NPU201-0": "a group whose backend the program names in capitals",
}
KEEPING = str(data_folder("reports") / "keep_cuda")
WITHOUT_NPU = str(HERE.parent / "samples" / "no_torch_npu")
HELP = """
An example has to run by itself: what it lacks goes into its `setup:` or `use:`. One that cannot run says why
in `not_run:`. See "Examples" in docs/rule_format.md."""
DIFFERS = "Where that is what the change is for, say so in its `differs:`."
# What many examples import, and takes a second or more: once, before the first one runs.
OFTEN_IMPORTED = ("torch", "torch.distributed", "torch._dynamo")
# What a migration changes in names, in values too.
NAMES = (("ascend_rt_", "cuda_"), ("ascend_", "cuda_"), ("npu", "cuda"), ("cann", "cuda"), ("hccl", "nccl"))


def results(folder: Path, side: str, examples: Mapping[str, Mapping[str, str]], run, *modules: str) -> Any:
    """What came of running one side of some examples."""
    texts = {
        name: {"setup": each.get("setup", ""), "text": each[side], "use": each.get("use", "")}
        for name, each in examples.items()
    }
    (folder / "examples.json").write_text(json.dumps(texts))
    files = str(folder / "examples.json"), str(folder / "results.json")
    done = run(PROGRAM, *files, *OFTEN_IMPORTED, *modules)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(Path(files[1]).read_text())


def without_npu(**env: str):
    """Runs a program where nothing finds an NPU, nor a GPU."""
    whole = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "CUDA_VISIBLE_DEVICES": "", **env}
    how = {"env": whole, "capture_output": True, "text": True, "timeout": 900}
    return lambda *command: subprocess.run([sys.executable, *command], **how)


@pytest.fixture(scope="module")
def on_npu(emulate, tmp_path_factory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("after")
    (folder / EQUIVALENTS).mkdir()
    for name, text in sources(file.stem for file in FUNCTIONS.glob("[!_]*.py")).items():
        (folder / EQUIVALENTS / f"{name}.py").write_text(text)
    run = partial(emulate, "python", env={"PYTHONPATH": str(folder)}, timeout=900)
    every = {name: example for name, (_, _, example) in EXAMPLES.items()}
    return results(folder, "after", every, run, "torch_npu", "torchvision")


@pytest.fixture(scope="module")
def on_cpu(emulate, tmp_path_factory) -> dict[str, Any]:
    # What is not compared needs no values.
    compared = {name: each for name, (_, _, each) in EXAMPLES.items() if "not_run" not in each}
    return results(tmp_path_factory.mktemp("before"), "before", compared, without_npu())


@pytest.fixture(scope="module")
def kept(emulate, tmp_path_factory) -> tuple[dict[str, Any], dict[str, Any]]:
    """What came of the examples of --keep-cuda on an NPU, and on a CPU."""
    run = partial(emulate, "python", env={"PYTHONPATH": KEEPING}, timeout=900)
    used = {name: {**each, "use": ""} if name in RENAMED else each for name, each in KEPT.items()}
    on_npu = results(tmp_path_factory.mktemp("npu"), "keep_cuda", used, run, "torch_npu")
    alone = {name: {**each, "use": ""} for name, each in KEPT.items()}
    run = without_npu(PYTHONPATH=os.pathsep.join((KEEPING, WITHOUT_NPU)))
    return on_npu, results(tmp_path_factory.mktemp("cpu"), "keep_cuda", alone, run)


@pytest.mark.parametrize("name", KEPT)
def test_example_of_keep_cuda(name: str, kept) -> None:
    on_npu, on_cpu = kept
    assert on_npu[name].get("error", "") == ""
    assert ("error" in on_cpu[name]) == (name in NEED_CUDA), on_cpu[name]


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
