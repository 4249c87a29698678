"""The command lines of pytorch_gpu2npu.sh."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from migrator.cli import main
from tests.reading import write

SAMPLES = Path(__file__).parents[2] / "samples"
TRAIN = "import torch\nx = torch.ones(2).cuda()\nprint(x)\n"


@pytest.fixture
def project(tmp_path, monkeypatch):
    rules = '{"rules": {"FuncNameModifyRule": [{"old_name": "f", "new_name": "g"}]}}'
    monkeypatch.chdir(tmp_path)
    return write(tmp_path, {"src/train.py": TRAIN, "rules.json": rules})


@pytest.mark.parametrize(
    "options",
    [("-v", "1.11"), ("-v", "2.1.0", "-s"), ("--version", "2.1", "--specify-device", "--rule", "rules.json")],
)
def test_they_migrate(project, options, capsys):
    assert main.run(["-i", "src", "-o", "out", *options]) == 0
    text = (project / "out" / "src_msft" / "train.py").read_text()
    assert ".npu()" in text
    assert ("DEVICE_ID" in text) == ({"-s", "--specify-device"} & set(options) != set())
    summary = json.loads((project / "out" / "src_msft" / "migration_report" / "summary.json").read_text())
    assert summary["options"]["specify_device"] == ("DEVICE_ID" in text)
    assert ("rules.json ignored: FuncNameModifyRule 1:" in capsys.readouterr().err) == ("--rule" in options)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("-m",), "npumigrate launch modelarts"),
        (("-m", "distributed", "-m", "train.py"), "npumigrate launch modelarts"),
        (("--modelarts",), "npumigrate launch modelarts"),
        (("-sim",), "use --replace-unsupported instead of -sim"),
        (("-a", "model"), "-a is not needed"),
    ],
)
def test_what_has_another_name_here_is_said_in_a_line(project, options, said, capsys):
    assert main.run(["-i", "src", "-o", "out", "-v", "2.1", *options]) == 2
    assert said in capsys.readouterr().err
    assert not (project / "out").exists()


def test_the_script_and_the_model_are_named_behind_distributed(project):
    source = str(SAMPLES / "resnet18_cifar")
    behind = ["distributed", "-m", "train.py", "--target_model", "net"]
    assert main.run(["-i", source, "-o", "out", "-v", "2.6", "-s", *behind]) == 0
    text = (project / "out" / "resnet18_cifar_msft_multi" / "train.py").read_text()
    assert "DEVICE_ID" in text
    assert "DistributedDataParallel" in text


def test_one_source_is_written_with_its_module(project):
    assert main.run(["src", "-o", "out", "-v", "2.6", "--keep-cuda"]) == 0
    result = project / "out" / "src_msft"
    assert "import shared_device" in (result / "train.py").read_text()
    assert "torch.accelerator" in (result / "shared_device.py").read_text()
    assert main.run([str(result), "-o", "again", "-v", "2.6", "--keep-cuda"]) == 0
    again = project / "again" / "src_msft_msft"
    for name in ("train.py", "shared_device.py"):
        assert (again / name).read_bytes() == (result / name).read_bytes()


def test_a_module_of_that_name_is_an_error_in_one_line(project, capsys):
    (project / "src" / "shared_device.py").write_text("x = 1\n")
    assert main.run(["src", "-o", "out", "-v", "2.6", "--keep-cuda"]) == 2
    assert "shared_device.py: it belongs to the project" in capsys.readouterr().err
    assert not (project / "out" / "src_msft").exists()


@pytest.mark.parametrize("other", [("--distributed",), ("--mode", "transfer"), ("--replace-unsupported",)])
def test_one_source_excludes_other_ways(project, other, capsys):
    assert main.run(["src", "-o", "out", "-v", "2.6", "--keep-cuda", *other]) == 2
    assert "cannot be used together" in capsys.readouterr().err
