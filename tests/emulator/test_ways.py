"""Programs in the ways in which people write them: migrated once, started as their README says, and judged.

Each folder in ``ways/`` is a project; the indented line of its README starts it. The migrated program runs on
two emulated NPUs, the original on the CPU, where the emulator lets the CPU stand in for CUDA. Both have to
come to their end and print the same numbers, and the NPUs have to have done the work.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from migrator.cli import main
from migrator.compare.printed import compare
from migrator.emulator.launch import with_cuda_on_cpu
from migrator.verify.observed import read_processes
from migrator.verify.verdict import PASSED, Original, judge
from tests.emulator.conftest import HERE, run_program
from tests.warm import warm

WAYS = sorted(path.parent for path in (HERE / "ways").glob("*/README.md"))
# Horovod and nvidia-smi, which the originals ask for.
STAND_INS = HERE / "ways" / "stand_ins"
HOROVOD = HERE.parent / "convert" / "horovod" / "stand_in"
TOLERANCE = 1e-3
# Programs that do not run yet, and why.
EXPECTED: dict[str, str] = {}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.xfail(reason=EXPECTED[name])] if name in EXPECTED else [])
        for name in (way.name for way in WAYS)
    ],
)
def test_program(machine: dict[str, str], tmp_path: Path, name: str) -> None:
    way, original = HERE / "ways" / name, tmp_path / "original" / name
    assert main.run(["migrate", "-q", "-i", str(way), "-o", str(tmp_path), "-v", "2.13"]) == 0
    shutil.copytree(way, original)
    ended, errors = run_program(tmp_path / f"{name}_msft", tmp_path / "npu", warm(machine, "npu"))
    assert not ended.code, errors[-3000:]
    cuda = warm(with_cuda_on_cpu(machine))
    cuda["PYTHONPATH"] += f"{os.pathsep}{HOROVOD}"
    cuda["PATH"] = f"{STAND_INS}{os.pathsep}{cuda['PATH']}"
    before, errors = run_program(original, tmp_path / "cpu", cuda)
    assert not before.code, errors[-3000:]
    comparison = compare(before.output, ended.output, TOLERANCE)
    first = Original(str(original), before, tuple(read_processes(tmp_path / "cpu")), comparison)
    verdict = judge(ended, read_processes(tmp_path / "npu"), (), (), first)
    assert verdict.outcome == PASSED, (verdict.reasons, comparison.wrong)
    assert not comparison.only_original + comparison.only_migrated
    ranks = len(list(tmp_path.glob("npu.*.out")))
    assert len(verdict.operators) >= ranks
    assert not verdict.transfer
    if ranks > 1:
        assert {"HcclAllReduce"} <= verdict.collectives.keys()


def test_there_are_twenty_programs() -> None:
    assert len(WAYS) >= 20
