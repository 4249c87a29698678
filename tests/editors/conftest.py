"""What an editor starts: a command of the name npumigrate."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest


@pytest.fixture
def command(tmp_path: Path) -> Path:
    """The command npumigrate, alone in a folder."""
    file = tmp_path / "bin" / "npumigrate"
    file.parent.mkdir()
    file.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m migrator "$@"\n')
    file.chmod(0o755)
    return file
