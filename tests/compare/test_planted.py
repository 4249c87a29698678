"""Planted differences: the first parting names the module that has them. The same numbers do not part."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from migrator.compare.reading import BOOTSTRAP, read_trace
from migrator.compare.showing import Outcome, compare
from tests.warm import warm

HERE = Path(__file__).parent

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")


def names(of: str) -> list[str]:
    """The keys of a table of programs.py, which needs torch."""
    text = (HERE / "programs.py").read_text(encoding="utf-8")
    inside = text.partition(f"\n{of} = {{\n")[2].partition("\n}\n")[0]
    return [line.split('"')[1] for line in inside.splitlines() if line.startswith('    "')]


@pytest.fixture(scope="module")
def traces(tmp_path_factory) -> Path:
    """The traces of all programs, recorded in one process."""
    folder = tmp_path_factory.mktemp("traces")
    env = {**os.environ, "PYTHONPATH": str(BOOTSTRAP), "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    env |= {"OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, str(HERE / "programs.py"), str(folder)], env=warm(env), check=True)
    return folder


def outcome(traces: Path, first: str, second: str) -> Outcome:
    return compare(read_trace(traces / first), read_trace(traces / second))


@pytest.mark.parametrize("name", names("PLANTED"))
def test_the_module_with_a_planted_difference_is_named(traces, name) -> None:
    model, place, cause = (traces / name / "planted").read_text(encoding="utf-8").split("\n")
    found = outcome(traces, model, name)
    assert not found.agrees
    assert found.parting is not None
    parting = found.parting.parting
    assert parting is not None
    assert parting.place == place
    assert parting.causes
    assert cause in ("", parting.causes[0]["name"])


@pytest.mark.parametrize("name", names("CLEAN"))
def test_the_same_numbers_are_no_difference(traces, name) -> None:
    found = outcome(traces, (traces / name / "planted").read_text(encoding="utf-8"), name)
    assert found.parting is None
    assert found.agrees


def test_what_is_recorded_is_what_runs(traces) -> None:
    """The numbers of a tensor, and the distance that their sums tell."""
    process = read_trace(traces / "resnet").processes[0]
    model = next(call for call in process.steps[0].inside if call.kind == "ResNet")
    images, logits = (process.tensors[each[0]] for each in (model.given, model.made))
    assert (images.shape, images.dtype, images.device, images.graded) == ("6x3x8x8", "float32", "cpu", False)
    assert -2.0 <= images.low < -1.9 < 1.9 < images.high <= 2.0
    assert (images.nan, images.inf, logits.shape, logits.graded) == (0, 0, "6x5", True)
    assert process.modules["ResNet", "blocks.1.first.bn"][1]["eps"] == 1e-5
    assert process.lines[0][1].startswith("step 0 loss: ")
    assert process.steps[0].optimizers["SGD 0.0"]["momentum"] == 0.9
