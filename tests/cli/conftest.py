from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import pytest

from migrator.cli.main import run

TRAIN = """\
import torch

x = torch.zeros(2).cuda()
torch.cuda.synchronize()
"""
PLAIN = "print('nothing to do')\n"


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str


Command = Callable[..., Answer]


@pytest.fixture
def npumigrate(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command line in this process: arguments in, exit code and output out."""
    monkeypatch.setenv("COLUMNS", "80")

    def command(*arguments: object) -> Answer:
        capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return command


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A small CUDA project."""
    folder = tmp_path / "project"
    (folder / "models").mkdir(parents=True)
    (folder / "train.py").write_text(TRAIN)
    (folder / "plain.py").write_text(PLAIN)
    (folder / "models" / "net.py").write_text("import torch\n\n\ndef net(x):\n    return x.cuda()\n")
    (folder / "README.txt").write_text("runs on cuda\n")
    return folder
