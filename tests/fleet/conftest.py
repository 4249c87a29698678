from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.reading import write

pytest.importorskip("distributed")

if sys.platform == "win32":
    pytest.skip("fleet runs on Linux and macOS", allow_module_level=True)


@pytest.fixture
def make_list(tmp_path: Path) -> Callable[[int], Path]:
    """Makes so many small repositories, and the list of them."""

    def make(count: int) -> Path:
        lines = []
        for number in range(count):
            text = f"import torch\nx = torch.ones({number}).cuda()\n"
            text += "import cupy\ny = cupy.ones(3)\n" if number % 2 else ""
            lines.append(str(write(tmp_path / "repos" / f"r{number:03}", {"a.py": text})))
        file = tmp_path / "repos.txt"
        file.write_text("\n".join(lines))
        return file

    return make
