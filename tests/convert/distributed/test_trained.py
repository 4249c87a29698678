"""Programs for one card, converted and trained on emulated NPUs: as one card does with the whole batch."""

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
SAMPLES = HERE.parents[2] / "samples"
BATCH = re.compile(r"(\bbatch[-_]size\b(?:: int)?\W+(?:type=int, )?(?:default=)?)(16|8|4)\b")
STYLES = (
    "flat with_main trainer_class other_files data_parallel accumulation keywords amp language_model gan"
    " resume siamese phases closure wrappers random_batches own_batches shared_loader stop_early folds"
    " parallel_keys"
).split()
# Where the batch size stands, if not in the script.
BATCH_FILES = {"other_files": "data.py", "language_model": "lm/settings.py"}
# What stands in for packages that are not installed.
PATHS = [str(HERE / "packages"), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
PACKAGES = {"PYTHONPATH": os.pathsep.join(PATHS)}
USUAL = {("resume", 2), ("own_batches", 2), ("siamese", 4)}  # the rest is thorough


def convert(name: str, ranks: int, folder: Path) -> Path:
    """The converted program; each rank takes its share of the original's batch."""
    source = folder / name
    shutil.copytree(HERE / "programs" / name, source)
    file = source / BATCH_FILES.get(name, "train.py")
    text = file.read_text()
    changed = BATCH.sub(lambda found: f"{found[1]}{int(found[2]) // ranks}", text, 1)
    assert ranks == 1 or changed != text
    file.write_text(changed)
    arguments = ["-q", "-i", str(source), "-o", str(folder / "out"), "-v", "2.13"]
    assert run([*arguments, "distributed", "-m", "train.py"]) == 0
    return folder / "out" / f"{name}_msft_multi" / "train.py"


def final(output: str) -> float:
    """The loss over all data that a program prints at its end: one rank does."""
    (loss,) = re.findall(r"^FINAL (-?\d+\.\d+)$", output, re.M)
    return float(loss)


def while_training(output: str) -> list[float]:
    """The numbers that a program prints of its training batches: those of all ranks."""
    return [float(one) for line in re.findall(r"^TRAIN (.*)$", output, re.M) for one in line.split()]


@pytest.mark.parametrize(
    ("name", "ranks"),
    [
        pytest.param(name, ranks, marks=() if (name, ranks) in USUAL else pytest.mark.thorough)
        for name in STYLES
        for ranks in (2, 4)
    ],
)
def test_ranks_train_as_one_card_with_the_whole_batch(
    emulate: Emulate, tmp_path: Path, name: str, ranks: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:  # no NPU in this process
        patch.setenv("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
        torch = pytest.importorskip("torch")
    one = tmp_path / "one"
    one.mkdir()
    env = {**os.environ, **PACKAGES, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    alone = subprocess.run(
        [sys.executable, str(HERE / "programs" / name / "train.py")],
        cwd=one,
        env=warm(env),
        capture_output=True,
        text=True,
    )
    assert alone.returncode == 0, alone.stderr
    script = convert(name, ranks, tmp_path)
    many = tmp_path / "many"
    many.mkdir()
    launcher = ("torchrun", "--standalone", f"--nproc_per_node={ranks}", str(HERE / "keep_models.py"))
    done = emulate(*launcher, str(script), str(many), options=("--cpu-random",), cwd=many, env=PACKAGES)
    assert done.returncode == 0, done.stderr[-3000:]
    assert final(done.stdout) == pytest.approx(final(alone.stdout), rel=1e-4)
    assert while_training(done.stdout) == pytest.approx(while_training(alone.stdout), rel=1e-4, abs=1e-5)
    expected = torch.load(one / "model.pt")
    saved = torch.load(many / "model.pt", map_location="cpu")
    states = [torch.load(many / f"rank-{rank}.pt") for rank in range(ranks)]
    assert list(saved) == list(expected)
    assert all(torch.equal(*pair) for pair in zip(saved.values(), list(states[0].values())[-len(saved) :]))
    for state in states:
        parted = [key for key, value in states[0].items() if not torch.equal(state[key], value)]
        assert not parted, "the ranks have parted"
    for key, value in expected.items():
        assert torch.allclose(saved[key], value, rtol=1e-4, atol=1e-5), key
    if (evaluate := script.with_name("evaluate.py")).exists():  # another script of the project loads it
        loaded = emulate("python", str(evaluate), options=("--cpu-random", "--devices", "2"), cwd=many)
        assert loaded.returncode == 0, loaded.stderr[-3000:]
        assert final(loaded.stdout) == pytest.approx(final(done.stdout), rel=1e-4)


def test_without_a_launcher_it_trains_alone(emulate: Emulate, tmp_path: Path) -> None:
    script = convert("flat", 1, tmp_path)
    done = emulate("python", str(script), options=("--cpu-random",), cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert final(done.stdout) > 0
    assert (tmp_path / "model.pt").exists()


def test_the_resnet_sample(emulate: Emulate, tmp_path: Path) -> None:
    """It has BatchNorm, whose averages are rank 0's: the parameters are those of both ranks."""
    folders = ("-i", str(SAMPLES / "resnet18_cifar"), "-o", str(tmp_path))
    assert run(["-q", *folders, "-v", "2.13", "--distributed", "-m", "train.py"]) == 0
    script = tmp_path / "resnet18_cifar_msft_multi" / "train.py"
    small = "--synthetic --epochs 1 --batch-size 2 --workers 0 --steps 2 --lr 0.01 --image-size 16".split()
    launcher = ("torchrun", "--standalone", "--nproc_per_node=2", str(HERE / "keep_models.py"))
    done = emulate(*launcher, str(script), str(tmp_path), *small, options=("--cpu-random",), cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("FINAL") == 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
        torch = pytest.importorskip("torch")
    states = [torch.load(tmp_path / f"rank-{rank}.pt") for rank in range(2)]
    saved = torch.load(tmp_path / "checkpoint" / "ckpt.pth", map_location="cpu")["net"]
    assert list(saved) == list(states[0])
    for key, value in states[0].items():
        assert "running_" in key or torch.equal(value, states[1][key]), key
        assert torch.equal(value, saved[key]), key
