"""What the tests of files share."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Callable

import pytest

if TYPE_CHECKING:
    Snapshot = Callable[[Path], dict[str, tuple[str, object]]]


@pytest.fixture
def snapshot() -> Snapshot:
    """A function that gives everything below a folder: names, modes, contents, link texts."""

    def take(folder: Path) -> dict[str, tuple[str, object]]:
        found: dict[str, tuple[str, object]] = {}
        for parent, folders, files in os.walk(folder):
            for name in folders + files:
                path = os.path.join(parent, name)
                status = os.lstat(path)
                held: object = None
                if stat.S_ISLNK(status.st_mode):
                    held = os.readlink(path)
                elif stat.S_ISREG(status.st_mode):
                    held = Path(path).read_bytes()
                found[os.path.relpath(path, folder)] = (oct(status.st_mode), held)
        return found

    return take


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A small project."""
    root = tmp_path / "in" / "proj"
    (root / "pkg" / "deep").mkdir(parents=True)
    (root / "train.py").write_bytes(b"import torch\nx = torch.cuda.device_count()\n")
    (root / "pkg" / "__init__.py").write_bytes(b"")
    (root / "pkg" / "deep" / "ops.py").write_bytes(b"a = 1\r\n")
    (root / "README.md").write_bytes(b"# proj\n")
    return root
