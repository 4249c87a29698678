"""Each sample project runs as it is (before any migration) on a CPU, with random data.

The samples run in processes of their own, with shim/ on PYTHONPATH (see shim/sitecustomize.py). They use the
interpreter that runs pytest; NPUMIGRATE_TORCH_PYTHON names another one, for a set-up where torch and
torchvision live in an environment without pytest.
"""
import math
import os
import re
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.slow_gloo import slow_gloo
from tests.warm import warm

__all__ = ["slow_gloo"]
HERE = Path(__file__).resolve().parent
SAMPLES = HERE.parents[1] / "samples"
PYTHON = os.environ.get("NPUMIGRATE_TORCH_PYTHON", sys.executable)
TIMEOUT = 300
SHORT = ["--synthetic", "--batch-size", "4", "--image-size", "32", "--workers", "0"]


def has_torch():
    # torch is looked up, not imported: its import here would load device back ends into the pytest process
    code = "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"
    return subprocess.run([PYTHON, "-c", code], timeout=900).returncode == 0


pytestmark = pytest.mark.skipif(not has_torch(), reason="torch is not installed")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def run(script, *options, cwd, processes=1):
    """Runs a sample and returns (values of the FINAL line, whole output)."""
    env = dict(os.environ)
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        env.pop(name, None)
    paths = [str(HERE / "shim")] + [p for p in env.get("PYTHONPATH", "").split(os.pathsep) if p]
    env.update({
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONDONTWRITEBYTECODE": "1",
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
        "CUDA_VISIBLE_DEVICES": "",
        "OMP_NUM_THREADS": "1",
    })
    command = [PYTHON]
    if processes > 1:
        command += ["-m", "torch.distributed.run", "--nproc_per_node", str(processes),
                    "--master_addr", "127.0.0.1", "--master_port", str(free_port())]
    command += [str(SAMPLES / script), *map(str, options)]
    env = warm(env) if PYTHON == sys.executable else env
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=TIMEOUT)
    assert done.returncode == 0, done.stdout + done.stderr
    last = done.stdout.strip().splitlines()[-1]
    assert last.startswith("FINAL "), done.stdout
    return {name: float(value) for name, value in re.findall(r"(\w+)=(\S+)", last)}, done.stdout


@pytest.fixture(scope="module")
def folder():
    # not tmp_path, which pytest keeps after the run: the checkpoints are large
    with tempfile.TemporaryDirectory(prefix="samples-") as name:
        yield Path(name)


def assert_finite(values, *names):
    for name in names:
        assert math.isfinite(values[name]), values


# ResNet-18, one card, one file

CIFAR = "resnet18_cifar/train.py"
CIFAR_OPTIONS = [*SHORT, "--steps", 4, "--lr", 0.01]


@pytest.fixture(scope="module")
def cifar(folder):
    return run(CIFAR, *CIFAR_OPTIONS, "--epochs", 1, "--seed", 3, "--checkpoint-dir", "cifar", cwd=folder)


def test_cifar_runs(cifar, folder):
    values, output = cifar
    assert_finite(values, "train_loss", "test_loss", "best_acc")
    assert "CUDA is not used, running on the CPU" in output
    assert (folder / "cifar" / "ckpt.pth").is_file()


@pytest.mark.thorough
def test_cifar_seed_decides_the_losses(cifar, folder):
    options = [*CIFAR_OPTIONS, "--epochs", 1, "--checkpoint-dir", "cifar-again"]
    assert run(CIFAR, *options, "--seed", 3, cwd=folder)[0] == cifar[0]
    other, _ = run(CIFAR, *options, "--seed", 4, cwd=folder)
    assert other["train_loss"] != cifar[0]["train_loss"]


def test_cifar_resumes(cifar, folder):
    values, output = run(CIFAR, *CIFAR_OPTIONS, "--epochs", 2, "--resume", "--checkpoint-dir", "cifar",
                         cwd=folder)
    assert_finite(values, "train_loss", "test_loss")
    assert "Epoch: 1" in output and "Epoch: 0" not in output


def test_cifar_learns(folder):
    values, _ = run(CIFAR, "--synthetic", "--batch-size", 16, "--image-size", 16, "--workers", 0,
                    "--steps", 8, "--lr", 0.02, "--epochs", 2, "--checkpoint-dir", "cifar-learns", cwd=folder)
    assert values["train_loss"] < 1.0 and values["best_acc"] > 80, values


# MobileNetV3, one card, several files

MOBILENET = "mobilenetv3_single/train.py"
MOBILENET_OPTIONS = [*SHORT, "--steps", 4]


@pytest.fixture(scope="module")
def mobilenet(folder):
    return run(MOBILENET, *MOBILENET_OPTIONS, "--epochs", 1, "--seed", 3, "--output-dir", "mobilenet",
               cwd=folder)


def test_mobilenet_runs(mobilenet, folder):
    values, output = mobilenet
    assert_finite(values, "train_loss", "val_loss", "acc", "best_acc")
    assert "CUDA not found, using the CPU" in output
    for name in ("last.pt", "best.pt"):
        assert (folder / "mobilenet" / name).is_file()


@pytest.mark.thorough
def test_mobilenet_seed_decides_the_losses(mobilenet, folder):
    options = [*MOBILENET_OPTIONS, "--epochs", 1, "--output-dir", "mobilenet-again"]
    assert run(MOBILENET, *options, "--seed", 3, cwd=folder)[0] == mobilenet[0]
    other, _ = run(MOBILENET, *options, "--seed", 4, cwd=folder)
    assert other["train_loss"] != mobilenet[0]["train_loss"]


def test_mobilenet_config_and_resume(mobilenet, folder):
    values, output = run(MOBILENET, "--config", SAMPLES / "mobilenetv3_single/configs/mobilenetv3_small.yaml",
                         *MOBILENET_OPTIONS, "--epochs", 2, "--resume", "mobilenet/last.pt",
                         "--output-dir", "mobilenet-resumed", cwd=folder)
    assert_finite(values, "train_loss", "val_loss")
    assert "Resumed from mobilenet/last.pt at epoch 1" in output
    assert "Epoch [2/2]" in output and "Epoch [1/2]" not in output


def test_mobilenet_evaluate_agrees_with_training(mobilenet, folder):
    values, _ = run("mobilenetv3_single/evaluate.py", "--checkpoint", "mobilenet/last.pt", cwd=folder)
    assert values == {"val_loss": mobilenet[0]["val_loss"], "acc": mobilenet[0]["acc"]}


# ResNet-50, one or several processes

IMAGENET = "resnet50_imagenet/main.py"
IMAGENET_OPTIONS = [*SHORT, "--image-size", 64, "--steps", 2, "--seed", 3]


@pytest.fixture(scope="module")
def imagenet(folder):
    return run(IMAGENET, *IMAGENET_OPTIONS, "--epochs", 1, "--output-dir", "imagenet", cwd=folder)


def test_imagenet_runs_as_plain_python(imagenet, folder):
    values, output = imagenet
    assert_finite(values, "train_loss", "val_loss", "acc1", "acc5")
    assert "CUDA is not available" in output
    assert (folder / "imagenet" / "checkpoint.pth.tar").is_file()


@pytest.mark.thorough
def test_imagenet_is_reproducible(imagenet, folder):
    again, _ = run(IMAGENET, *IMAGENET_OPTIONS, "--epochs", 1, "--output-dir", "imagenet-again", cwd=folder)
    assert again == imagenet[0]


def test_imagenet_evaluate_agrees_with_training(imagenet, folder):
    values, output = run(IMAGENET, *IMAGENET_OPTIONS, "--evaluate", "--resume", "imagenet/checkpoint.pth.tar",
                         cwd=folder)
    assert "loaded checkpoint 'imagenet/checkpoint.pth.tar' (epoch 1)" in output
    for name in ("val_loss", "acc1", "acc5"):
        assert values[name] == imagenet[0][name]


@pytest.mark.thorough
def test_imagenet_two_processes_and_resume(folder):
    whole, output = run(IMAGENET, *IMAGENET_OPTIONS, "--epochs", 2, "--output-dir", "ddp-whole", cwd=folder,
                        processes=2)
    assert_finite(whole, "train_loss", "val_loss", "acc1", "acc5")
    assert output.count("FINAL ") == 1 and output.count("validation:") == 2  # rank 0 alone prints

    run(IMAGENET, *IMAGENET_OPTIONS, "--epochs", 1, "--output-dir", "ddp-half", cwd=folder, processes=2)
    rest, output = run(IMAGENET, *IMAGENET_OPTIONS, "--epochs", 2, "--output-dir", "ddp-half",
                       "--resume", "ddp-half/checkpoint.pth.tar", cwd=folder, processes=2)
    assert "epoch 1 step" in output and "epoch 0 step" not in output
    assert rest == whole


@pytest.mark.thorough
def test_imagenet_ends_where_gloo_is_late(slow_gloo, folder):
    """The process group ends before its threads are done with the last collective."""
    ranks = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    small = ["--arch", "resnet18", "--num-classes", 4, "--epochs", 1, "--steps", 1, "--output-dir", "late"]
    done = slow_gloo(str(SAMPLES / IMAGENET), *map(str, [*SHORT, *small]), cwd=folder,
                     env={**ranks, "PYTHONPATH": str(HERE / "shim")}, timeout=900)
    assert done.returncode == 0 and "FINAL " in done.stdout, done.stdout + done.stderr
