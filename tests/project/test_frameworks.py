"""Scripts of other frameworks than PyTorch: nothing that starts PyTorch programs starts them."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.cli.main import run
from migrator.launch.launcher_lines import find_lines
from migrator.project.entry import candidate
from migrator.project.frameworks import other_framework

MXNET = """\
import argparse
import mxnet as mx
import horovod.mxnet as hvd
def train():
    loss.backward()
if __name__ == "__main__":
    train()
"""


@pytest.mark.parametrize(
    ("text", "framework"),
    [
        ("import tensorflow as tf\n", "tensorflow"),
        ("    from keras.models import Sequential\n", "tensorflow"),
        ("import horovod.mxnet as hvd\n", "mxnet"),
        ("import tensorflow as tf\nimport torch\n", ""),
        ("import horovod.torch as hvd\nimport keras\n", ""),
        ("import tensorflow_datasets\nimport kerastuner\n", ""),
        ("text = 'import keras'\n", ""),
    ],
)
def test_the_framework_of_a_file(text: str, framework: str) -> None:
    assert other_framework(text) == framework


def test_such_a_script_is_no_training_script() -> None:
    assert candidate("train_mnist.py", MXNET) is None
    assert candidate("train_mnist.py", MXNET.replace("mxnet", "torch")) is not None


@pytest.mark.parametrize(
    "command",
    [
        ["launch", "mpi", "--", "horovodrun", "-np", "2", "python", "train_mnist.py"],
        ["launch", "modelarts", "-o", ".", "-m", "train_mnist.py"],
        ["migrate", "-i", ".", "-o", "out", "-m", "train_mnist.py"],
    ],
)
def test_no_command_starts_it(
    command: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train_mnist.py").write_text(MXNET)
    assert run(command) == 2
    said = capsys.readouterr().err
    assert "train_mnist.py is a program of MXNet, which torchrun does not start" in said
    assert [each.name for each in tmp_path.iterdir()] == ["train_mnist.py"]


def test_a_line_that_starts_it_stays() -> None:
    text = "horovodrun -np 2 python src/train_mnist.py\nhorovodrun -np 2 python train.py\n"
    (found,) = find_lines(text, {"train_mnist.py"})
    assert (found.line, found.advice) == (2, "Write: bash run_distributed_npu.sh --entry train.py --nproc 2")
