"""Programs in the ways in which people write them: migrated once, started as their README says, and judged.

Each folder in ``ways/`` is a project; the indented line of its README starts it. The migrated program runs on
two emulated NPUs, the original on the CPU, where the emulator lets the CPU stand in for CUDA. Both have to
come to their end and print the same numbers, and the NPUs have to have done the work. All of one side are
children of one process, because to start torch_npu takes longer than these programs do.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

from migrator.cli import main
from migrator.compare.printed import compare
from migrator.verify.observed import read_processes
from migrator.verify.processes import Ended
from migrator.verify.verdict import PASSED, Original, judge
from tests.emulator.conftest import HERE

RUNNER = str(HERE / "programs" / "run_programs.py")
WAYS = sorted(path.parent for path in (HERE / "ways").glob("*/README.md"))
# Horovod and nvidia-smi, which the originals ask for.
STAND_INS = HERE / "ways" / "stand_ins"
HOROVOD = HERE.parent / "convert" / "horovod" / "stand_in"
CPU = {"NPUMIGRATE_EMULATOR_STAND_IN": "cuda", "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
COMMAND = re.compile(
    r"^    (?:python|torchrun --nproc_per_node=(\d+)|horovodrun -np (\d+) python) (\S+\.py)(.*)$", re.M
)
# Optimizers import the second one.
MODULES = ("torch", "torch._dynamo", "torch.distributed", "numpy")
TOLERANCE = 1e-3
# Programs that do not run yet, and why.
EXPECTED: dict[str, str] = {}


def start_of(way: Path) -> dict[str, Any]:
    """What the README's command starts: a script with arguments, by itself (0 ranks) or as several ranks."""
    (found,) = COMMAND.findall((way / "README.md").read_text())
    torchrun, horovodrun, script, arguments = found
    return {"script": script, "arguments": shlex.split(arguments), "ranks": int(torchrun or horovodrun or 0)}


def run_all(
    emulate, folder: Path, runs: dict[str, Any], modules: tuple[str, ...], **how: Any
) -> dict[str, Any]:
    """Run programs, each in a copy of its project's folder; give how each ended."""
    (folder / "runs.json").write_text(json.dumps(runs))
    files = (str(folder / "runs.json"), str(folder / "results.json"))
    done = emulate("python", RUNNER, *files, *modules, timeout=500, **how)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads((folder / "results.json").read_text())


@pytest.fixture(scope="module")
def migrated(emulate, tmp_path_factory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("npu")
    runs = {}
    for way in WAYS:
        assert main.run(["migrate", "-q", "-i", str(way), "-o", str(folder), "-v", "2.13"]) == 0
        start = start_of(folder / f"{way.name}_msft")
        report = str(folder / f"{way.name}.report")
        runs[way.name] = {**start, "folder": str(folder / f"{way.name}_msft"), "report": report}
    options = ("--devices", "2", "--cpu-random")
    return folder, run_all(emulate, folder, runs, (*MODULES, "torch_npu"), options=options)


@pytest.fixture(scope="module")
def original(emulate, tmp_path_factory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("cpu")
    runs = {}
    for way in WAYS:
        shutil.copytree(way, folder / way.name)
        report = str(folder / f"{way.name}.report")
        runs[way.name] = {**start_of(way), "folder": str(folder / way.name), "report": report}
    env = {**CPU, "PYTHONPATH": str(HOROVOD), "PATH": f"{STAND_INS}{os.pathsep}{os.environ['PATH']}"}
    return folder, run_all(emulate, folder, runs, MODULES, options=("--devices", "2"), env=env)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.xfail(reason=EXPECTED[name])] if name in EXPECTED else [])
        for name in (way.name for way in WAYS)
    ],
)
def test_program(migrated, original, name: str) -> None:
    (npus, on_npu), (cpu, on_cpu) = migrated, original
    assert not on_cpu[name]["code"], on_cpu[name]["errors"][-3000:]
    assert not on_npu[name]["code"], on_npu[name]["errors"][-3000:]
    before, ended = (Ended(0, one[name]["seconds"], output=one[name]["output"]) for one in (on_cpu, on_npu))
    comparison = compare(before.output, ended.output, TOLERANCE)
    first = Original(str(cpu / name), before, tuple(read_processes(cpu / f"{name}.report")), comparison)
    processes = read_processes(npus / f"{name}.report")
    verdict = judge(ended, processes, (), (), first)
    assert verdict.outcome == PASSED, (verdict.reasons, comparison.wrong)
    assert not comparison.only_original + comparison.only_migrated
    ranks = start_of(HERE / "ways" / name)["ranks"]
    assert len(verdict.operators) >= max(1, ranks)
    assert not verdict.transfer
    if ranks:
        assert {"HcclAllReduce"} <= verdict.collectives.keys()


def test_there_are_twenty_programs() -> None:
    assert len(WAYS) >= 20
