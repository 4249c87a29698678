"""Horovod programs, migrated and run on two emulated NPUs: they print and learn what the originals do.

The originals run on the CPU; stand_in/ stands in for Horovod, which would have to be built.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from migrator.cli.main import run
from tests.emulator.conftest import Emulate, cache, emulate
from tests.warm import warm

__all__ = ["cache", "emulate"]
HERE = Path(__file__).parent
SAMPLE = HERE.parents[2] / "samples" / "horovod_resnet50"
KEEP_PARAMETERS = HERE / "keep_parameters.py"
SHIM = HERE.parents[1] / "samples" / "shim"
NUMBER = re.compile(r"-?\d+\.\d+")
SMALL = "--batch-size 2 --image-size 32 --classes 10 --warmup 0 --rounds 2 --steps 1 --clip 5"
SMALL += " --checkpoint model.pt"


def migrated(source: Path, folder: Path) -> Path:
    assert run(["-q", "-i", str(source), "-o", str(folder), "-v", "2.13"]) == 0
    result = folder / f"{source.name}_msft"
    assert (result / "ascend_horovod.py").is_file()
    return result


def original(script: Path, folder: Path, *arguments: str, ranks: int = 2) -> str:
    """What the original prints on the CPU."""
    folder.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={ranks}"]
    env = {
        **os.environ,
        "PYTHONPATH": f"{HERE / 'stand_in'}{os.pathsep}{SHIM}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
        "CUDA_VISIBLE_DEVICES": "",
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(
        [*command, str(script), *arguments],
        cwd=folder,
        env=warm(env),
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def on_npus(emulate: Emulate, script: Path, folder: Path, *arguments: str, keep: bool = True) -> str:
    folder.mkdir(exist_ok=True)
    kept = (str(KEEP_PARAMETERS), str(script), str(folder)) if keep else (str(script),)
    launcher = ("torchrun", "--standalone", "--nproc_per_node=2")
    done = emulate(*launcher, *kept, *arguments, options=("--cpu-random",), cwd=folder)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def assert_same_numbers(found: str, expected: str, rel: float = 1e-4) -> None:
    """Both say the same, up to rounding of the numbers with a point."""
    assert NUMBER.sub("#", found) == NUMBER.sub("#", expected)
    numbers = [float(one) for one in NUMBER.findall(found)]
    assert numbers == pytest.approx([float(one) for one in NUMBER.findall(expected)], rel=rel, abs=1e-5)


def assert_same_model(npus: Path, cpu: Path, name: str, torch: object, rel: float = 1e-4) -> None:
    """The ranks have the same parameters, and what rank 0 saved is what the original saved."""
    states = [torch.load(npus / f"rank-{rank}.pt") for rank in range(2)]  # type: ignore[attr-defined]
    saved = torch.load(npus / name, map_location="cpu")  # type: ignore[attr-defined]
    expected = torch.load(cpu / name)  # type: ignore[attr-defined]
    saved, expected = saved.get("model", saved), expected.get("model", expected)
    assert list(saved) == list(expected) == list(states[0])
    for key, value in expected.items():
        if "running_" not in key:  # those of a rank's own batches: Horovod leaves them apart
            assert torch.equal(states[0][key], states[1][key]), f"the ranks have parted: {key}"  # type: ignore[attr-defined]
        assert torch.equal(saved[key], states[0][key])  # type: ignore[attr-defined]
        assert torch.allclose(saved[key], value, rtol=rel, atol=rel / 10), key  # type: ignore[attr-defined]


@pytest.fixture(scope="session")
def torch() -> object:
    with pytest.MonkeyPatch.context() as patch:  # no NPU in this process
        patch.setenv("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
        return pytest.importorskip("torch")


def test_collectives(emulate: Emulate, torch: object, tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    shutil.copy(HERE / "programs" / "collectives.py", tmp_path / "source")
    script = migrated(tmp_path / "source", tmp_path) / "collectives.py"
    expected = original(HERE / "programs" / "collectives.py", tmp_path / "cpu")
    found = on_npus(emulate, script, tmp_path / "npu", keep=False)
    assert_same_numbers(found, expected)
    assert found.count("\n") > 90


@pytest.mark.thorough
def test_the_sample(emulate: Emulate, torch: object, tmp_path: Path) -> None:
    expected = original(SAMPLE / "benchmark.py", tmp_path / "cpu", *SMALL.split())
    script = migrated(SAMPLE, tmp_path) / "benchmark.py"
    found = on_npus(emulate, script, tmp_path / "npu", *SMALL.split())
    losses = re.compile(r"loss=? ?(\d+\.\d+)")
    assert losses.findall(expected)
    assert [float(one) for one in losses.findall(found)] == pytest.approx(
        [float(one) for one in losses.findall(expected)], rel=1e-4
    )
    assert_same_model(tmp_path / "npu", tmp_path / "cpu", "model.pt", torch, rel=1e-3)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "options", [("--predivide", "2", "--sync-bn"), ("--fp16-allreduce",)], ids=["float32", "float16"]
)
def test_steps_of_several_batches(
    emulate: Emulate, torch: object, tmp_path: Path, options: tuple[str, ...]
) -> None:
    """Two epochs, and a third one that takes up the checkpoint, which only rank 0 reads."""
    (tmp_path / "source").mkdir()
    program = HERE / "programs" / "globals_and_functions.py"
    shutil.copy(program, tmp_path / "source")
    script = migrated(tmp_path / "source", tmp_path) / program.name
    rel = 5e-3 if "--fp16-allreduce" in options else 1e-4
    for epochs in ("2", "3"):
        expected = original(program, tmp_path / "cpu", "--epochs", epochs, *options)
        found = on_npus(emulate, script, tmp_path / "npu", "--epochs", epochs, *options)
        assert_same_numbers(found, expected, rel)
        assert found.count("val") == (2 if epochs == "2" else 1)
        assert_same_model(tmp_path / "npu", tmp_path / "cpu", f"checkpoint-{epochs}.pt", torch, rel)


@pytest.mark.thorough
def test_a_trainer_in_two_files(emulate: Emulate, torch: object, tmp_path: Path) -> None:
    program = HERE / "programs" / "trainer"
    script = migrated(program, tmp_path) / "train.py"
    expected = original(program / "train.py", tmp_path / "cpu")
    found = on_npus(emulate, script, tmp_path / "npu")
    assert_same_numbers(found, expected)
    assert_same_model(tmp_path / "npu", tmp_path / "cpu", "model.pt", torch)


def test_without_a_launcher_it_trains_alone(emulate: Emulate, tmp_path: Path) -> None:
    script = migrated(SAMPLE, tmp_path) / "benchmark.py"
    done = emulate("python", str(script), *SMALL.split(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "on each of 1 devices" in done.stdout


def test_what_torch_has_not_is_refused_when_it_is_asked_for(emulate: Emulate, tmp_path: Path) -> None:
    script = migrated(SAMPLE, tmp_path) / "benchmark.py"
    done = emulate("python", str(script), *SMALL.split(), "--adasum", cwd=tmp_path)
    assert done.returncode != 0
    assert "torch.distributed has no Adasum" in done.stderr
