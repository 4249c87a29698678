"""The extension for VS Code, built, against the real server: its own tests in Node.js."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from migrator import __version__

EXTENSION = Path(__file__).parents[2] / "editors" / "vscode"
NODE = shutil.which("node")


def test_its_version_is_npumigrates() -> None:
    package = json.loads((EXTENSION / "package.json").read_text(encoding="utf-8"))
    assert package["version"] == __version__
    lock = json.loads((EXTENSION / "package-lock.json").read_text(encoding="utf-8"))
    assert lock["packages"][""]["dependencies"] == package["dependencies"]
    assert "resolved" not in str(lock)  # addresses of one registry


@pytest.mark.skipif(NODE is None, reason="needs Node.js 20")
@pytest.mark.skipif(not (EXTENSION / "node_modules").is_dir(), reason="needs npm ci in editors/vscode")
def test_the_extension_works_with_the_server(command: Path) -> None:
    environment = {**os.environ, "NPUMIGRATE": str(command)}
    for script in ("check", "build", "test"):
        done = subprocess.run(
            ["npm", "run", "--silent", script],
            cwd=EXTENSION,
            env=environment,
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
