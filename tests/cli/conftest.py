from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import pytest

from migrator.cli.main import run
from tests.reading import write

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


Migrated = Callable[..., tuple[Answer, Path]]


@pytest.fixture
def migrate(npumigrate: Command, tmp_path: Path) -> Migrated:
    """Migrates a project for torch 2.6; gives the answer and the result, in the folder ``out``."""

    def command(source: Path, *options: object, out: str = "out") -> tuple[Answer, Path]:
        answer = npumigrate("-i", source, "-o", tmp_path / out, "-v", "2.6", *options)
        return answer, tmp_path / out / f"{source.stem}_msft"

    return command


@pytest.fixture
def result_of(npumigrate: Command, tmp_path: Path) -> Callable[..., Path]:
    """Migrates a project of some files, for torch 2.6 without another; gives the folder of the result."""

    def command(files: Mapping[str, str], *options: str, name: str = "p") -> Path:
        usual = () if "-v" in options else ("-v", "2.6")
        answer = npumigrate(write(tmp_path / name, files), "-o", tmp_path / "out", *usual, *options)
        assert answer.code == 0, answer.err
        return tmp_path / "out" / f"{name}_msft"

    return command


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A small CUDA project."""
    return write(
        tmp_path / "project",
        {
            "train.py": TRAIN,
            "plain.py": PLAIN,
            "models/net.py": "import torch\n\n\ndef net(x):\n    return x.cuda()\n",
            "README.txt": "runs on cuda\n",
        },
    )
