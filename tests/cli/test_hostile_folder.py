"""Nothing of the current folder is imported, whatever its files are called."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

# Modules of Python, of what npumigrate uses, and of what its users have.
NAMES = (
    "__future__ ast atexit concurrent dataclasses gc hashlib json jedi logging migrator_extra multiprocessing"
    " numpy pathlib pickle random re rich selectors signal socket sqlite3 subprocess tempfile tokenize torch"
    " torch_npu traceback typer typing yaml libcst sitecustomize usercustomize"
).split()
COMMANDS = [
    ["lint", "--no-cache", "-v2.6", "-j2", "."],
    ["api", "torch.cuda.init", "-v", "2.6"],
    ["migrate", "-i", ".", "-o", "../out", "-v", "2.6", "-j", "2"],
    ["analyze", "-i", ".", "-o", "../out", "-v", "2.6", "-j", "2"],
    ["rule", "NPU101"],
]


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A project whose modules say that they were imported."""
    folder = tmp_path / "project"
    folder.mkdir()
    for name in NAMES:
        (folder / f"{name}.py").write_text(
            f"open({str(tmp_path / 'ran')!r}, 'a').write({name!r})\nimport torch\ntorch.cuda.init()\n"
        )
    return folder


def answer(hostile: Path, *program: str) -> tuple[int, str]:
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(
        [sys.executable, *program], cwd=hostile, env=environment, capture_output=True, text=True, check=False
    )
    ran = hostile.parent / "ran"
    assert not ran.exists(), (ran.read_text(), done.stderr)
    return done.returncode, done.stderr


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_python_m_imports_nothing_of_the_current_folder(hostile, command) -> None:
    code, err = answer(hostile, "-m", "migrator", *command)
    assert (code, err) == (1 if command[0] == "lint" else 0, "")


@pytest.mark.skipif(sys.version_info < (3, 11), reason="no PYTHONSAFEPATH")
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_workers_import_nothing_of_the_current_folder(hostile, method) -> None:
    program = hostile.parent / "program.py"
    program.write_text(
        "import multiprocessing, os, sys\n"
        "if __name__ == '__main__':\n"
        f"    multiprocessing.set_start_method({method!r})\n"
        "    from migrator.cli.start import run\n"
        "    code = run()\n"
        "    assert 'PYTHONSAFEPATH' not in os.environ\n"
        "    sys.exit(code)\n"
    )
    assert answer(hostile, str(program), *COMMANDS[2]) == (0, "")
