"""What --keep-cuda makes of the rules' examples: run on emulated NPUs, and on a CPU without torch_npu."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from migrator.data_folders import data_folder
from tests.checking import every_rule
from tests.emulator.conftest import HERE

PROGRAM = str(HERE / "programs" / "run_examples.py")
MODULE = str(data_folder("reports") / "keep_cuda")
WITHOUT_NPU = str(HERE.parent / "samples" / "no_torch_npu")
MODULES = ("torch", "torch.distributed")
EXAMPLES = {
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


def write(folder: Path, on_npu: bool) -> tuple[str, str]:
    examples = {
        name: {
            "setup": example.get("setup", ""),
            "text": example["keep_cuda"],
            "use": example.get("use", "") if on_npu and name not in RENAMED else "",
        }
        for name, example in EXAMPLES.items()
    }
    (folder / "examples.json").write_text(json.dumps(examples))
    return str(folder / "examples.json"), str(folder / "results.json")


@pytest.fixture(scope="module")
def on_npu(emulate, tmp_path_factory) -> dict[str, Any]:
    files = write(tmp_path_factory.mktemp("npu"), on_npu=True)
    done = emulate("python", PROGRAM, *files, *MODULES, "torch_npu", env={"PYTHONPATH": MODULE}, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(Path(files[1]).read_text())


@pytest.fixture(scope="module")
def on_cpu(tmp_path_factory) -> dict[str, Any]:
    files = write(tmp_path_factory.mktemp("cpu"), on_npu=False)
    path = os.pathsep.join((MODULE, WITHOUT_NPU))
    env = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": path}
    command = [sys.executable, PROGRAM, *files, *MODULES]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(Path(files[1]).read_text())


@pytest.mark.parametrize("name", EXAMPLES)
def test_on_an_npu(name, on_npu):
    assert on_npu[name].get("error", "") == ""


@pytest.mark.parametrize("name", EXAMPLES)
def test_on_a_cpu(name, on_cpu):
    assert ("error" in on_cpu[name]) == (name in NEED_CUDA), on_cpu[name]
