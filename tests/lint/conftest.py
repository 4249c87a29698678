from __future__ import annotations

import io
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

import pytest

from migrator.cli.main import run

TRAIN = """\
import torch

x = torch.zeros(2).cuda()
torch.cuda.synchronize()
"""


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str

    def json(self) -> Any:
        """What the output format json printed."""
        return json.loads(self.out)

    def places(self) -> list[tuple[str, int, int]]:
        """Code, row and column of each finding."""
        return [(i["code"], i["location"]["row"], i["location"]["column"]) for i in self.json()]


Lint = Callable[..., Answer]


@pytest.fixture
def lint(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Lint:
    """``npumigrate lint -v 2.6`` in this process, in the folder ``tmp_path``."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)

    def command(*arguments: object, version: str = "2.6", stdin: str | None = None) -> Answer:
        capsysbinary.readouterr()
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        given = ["-v", version] if version else []
        code = run(["lint", *given, *(str(argument) for argument in arguments)])
        captured = capsysbinary.readouterr()
        return Answer(code, captured.out.decode(), captured.err.decode())

    return command


@pytest.fixture
def train(tmp_path: Path) -> Path:
    """A file with three findings: NPU901, NPU111 and NPU101."""
    file = tmp_path / "train.py"
    file.write_text(TRAIN)
    return file
