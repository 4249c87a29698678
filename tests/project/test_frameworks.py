"""Scripts of other frameworks than PyTorch: nothing that starts PyTorch programs starts them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from migrator.cli.main import run
from migrator.launch.mpi import find_lines
from migrator.project.entry import candidate
from migrator.project.frameworks import described, frameworks_in, of_project, other_framework, shown_framework

MXNET = """\
import argparse
import mxnet as mx
import horovod.mxnet as hvd
def train():
    loss.backward()
if __name__ == "__main__":
    train()
"""


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
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train_mnist.py").write_text(MXNET)
    assert run(command) == 2
    said = capsys.readouterr().err
    assert "train_mnist.py is a MXNet program, which torchrun does not start" in said
    assert [each.name for each in tmp_path.iterdir()] == ["train_mnist.py"]


def test_a_line_that_starts_it_stays() -> None:
    text = "horovodrun -np 2 python src/train_mnist.py\nhorovodrun -np 2 python train.py\n"
    (found,) = find_lines(text, {"train_mnist.py"})
    assert (found.line, found.advice) == (2, "Write: bash run_distributed_npu.sh --entry train.py --nproc 2")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "import tensorflow as tf\nself.tf = tf\ntf.summary.FileWriter(x)\nself.tf.Summary.Image(y)\n",
            set(),
        ),
        ("import tensorflow.compat.v1 as tf\ntf.summary.FileWriter(x)\n", set()),
        ("from tensorflow.core.framework import summary_pb2\n", set()),
        ("from tensorflow.python.summary.summary_iterator import summary_iterator\n", set()),
        ("import tensorflow as tf\ntf.summary.scalar(x)\ntf.matmul(x, y)\n", {"tensorflow"}),
        (
            "import tensorflow as tf\nfrom tensorflow.keras import Model\ntf.summary.scalar(x)\n",
            {"tensorflow"},
        ),
        ("import tensorflow as tf\nimport keras\ntf.summary.scalar(x)\n", {"tensorflow"}),
    ],
)
def test_who_writes_logs_alone_with_tensorflow_is_no_program_of_it(text: str, found: set[str]) -> None:
    assert frameworks_in(text) == found


MIND = 'import mindspore as ms\nms.set_context(device_target="GPU")\n'
SERVERS = "import tensorflow as tf\nserver = tf.train.Server({}, job_name='ps')\nserver.join()\n"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import torch\n", set()),  # told only beside another one
        ("import mindspore\n# as torch does\n", {"mindspore"}),
        ("from mindcv.models import create_model\n", {"mindspore"}),
        ("import numpy, torch\nimport mindspore\n", {"mindspore", "torch"}),
        ("import horovod.torch as hvd\nimport keras\n", {"tensorflow", "torch"}),
        ('import jax\ntorch = pytest.importorskip("torch")\n', {"jax", "torch"}),
        ("import tensorflow as tf\n", {"tensorflow"}),
        ("    from keras.models import Sequential\n", {"tensorflow"}),
        ("import horovod.mxnet as hvd\n", {"mxnet"}),
        ("import tensorflow as tf\nimport torch\n", {"tensorflow", "torch"}),
        ("import tensorflow_datasets\nimport kerastuner\n", set()),
        ("words = 'import keras'\n", set()),
    ],
)
def test_the_frameworks_of_a_file(text: str, found: set[str]) -> None:
    assert frameworks_in(text) == found
    assert other_framework(text) == ("" if "torch" in found else min(found, default=""))


def test_a_file_that_shows_none_is_of_its_project() -> None:
    assert of_project({}) == of_project({"torch": 1, "mindspore": 9}) == {"torch"}
    assert of_project({"mindspore": 9}) == {"mindspore"}


def test_the_framework_of_bytes() -> None:
    told = map(
        shown_framework, (b"import torch\n", b"import mindspore\n", b"import mindspore, torch\n", b"# torch")
    )
    assert list(told) == ["torch", "mindspore", "torch", ""]
    assert shown_framework(b'{"source": ["import mindspore"]}', "eval.ipynb") == "mindspore"


def test_how_many_files_are_of_which() -> None:
    assert described({"torch": 1, "mindspore": 2}) == "MindSpore (2 files), PyTorch (1 file)"


@pytest.fixture
def lint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.chdir(tmp_path)

    def command(**files: str) -> str:
        for name, text in files.items():
            (tmp_path / name.replace("_", ".")).write_text(text)
        run(["lint", "--no-cache", "-v", "2.6", "--output-format", "concise"])
        return capsys.readouterr().out

    return command


def test_a_program_with_parameter_servers_does_not_pass(lint) -> None:
    said = lint(train_py=SERVERS)
    assert "All checks passed!" not in said
    assert "NPU1255" in said
    assert "Frameworks: TensorFlow/Keras (1 file).\n" in said


def test_a_project_of_pytorch_says_nothing_of_frameworks(lint) -> None:
    assert lint(train_py="import torch\n") == "All checks passed!\n"


def test_scripts_and_files_without_imports_are_of_their_project(lint) -> None:
    settings = 'device = "cuda"\nbackend = "nccl"\n'
    script = "mpirun -n 8 python train.py --device cuda\n"
    said = lint(train_py=MIND, settings_py=settings, run_sh=script)
    codes = {line.split(": ")[1].split()[0] for line in said.splitlines() if line.startswith(("run", "set"))}
    assert codes == {"NPU1201", "NPU1230"}


def test_in_a_mixed_project_each_line_is_of_its_script(lint) -> None:
    script = "mpirun -n 8 python mind.py\nmpirun -n 2 python train.py\n"
    said = lint(mind_py=MIND, train_py="import torch\n", run_sh=script)
    lines = [line for line in said.splitlines() if line.startswith("run")]
    assert [line.split(":")[1] + line.split(": ")[1].split()[0] for line in lines] == ["1NPU1230", "2NPU932"]


def test_the_summary_of_a_migration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mind").mkdir()
    (tmp_path / "mind" / "train.py").write_text(MIND)
    (tmp_path / "mind" / "run.sh").write_text("mpirun -n 8 python train.py\n")
    assert run(["migrate", str(tmp_path / "mind"), "-o", str(tmp_path), "-v", "2.6"]) == 0
    said = capsys.readouterr().out
    assert "Frameworks: MindSpore (1 file)" in said
    assert (
        "no PyTorch training script found; found programs of MindSpore; npumigrate launch mindspore" in said
    )
    result = tmp_path / "mind_msft"
    assert (result / "train.py").read_text() == MIND.replace("GPU", "Ascend")
    assert (result / "run.sh").read_text().startswith("msrun --worker_num=8")
    summary = json.loads((result / "migration_report" / "summary.json").read_text())
    assert summary["frameworks"] == {"mindspore": 1}


def test_each_project_gets_the_image_of_its_framework(lint) -> None:
    image = "FROM nvidia/cuda:11.8.0-devel-ubuntu22.04\n"

    def code(**files: str) -> list[str]:
        lines = lint(**files, Dockerfile=image).splitlines()
        return [line.split(": ")[1].split()[0] for line in lines if line.startswith("Dockerfile")]

    assert code(mind_py=MIND) == ["NPU1222"]
    assert code(mind_py=MIND, train_py="import torch\n") == ["NPU456"]
