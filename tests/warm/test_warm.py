"""A program that a process with torch runs ends, prints and fails as in a Python of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.warm import warm

pytestmark = pytest.mark.skipif(
    sys.version_info < (3, 10) or not sys.platform.startswith("linux") or find_spec("torch") is None,
    reason="needs torch",
)
PROGRAM = """
import atexit, json, os, sys
import helper
atexit.register(print, "at the end")
print(__name__, os.path.basename(__file__), sys.argv[1:], os.getcwd(), sys.path[0], helper.VALUE)
print(os.environ["WORD"], flush=True)
print(sys.stdin.read(), file=sys.stderr)
"""
ENDS = {
    "well": "",
    "exit": "sys.exit(7)",
    "words": "sys.exit('why')",
    "signal": "os.kill(os.getpid(), 9)",
    "at_once": "os._exit(3)",
    "error": "def fails():\n    raise ValueError('no')\nfails()",
    "torch": "import torch; print(torch.__spec__.name, torch.ones(2).sum(), 'torch_npu' in sys.modules)",
}


@pytest.mark.parametrize(
    ("start", "end"),
    [
        *((["program.py"], end) for end in ENDS),
        (["-m", "program"], "exit"),
        (["-u", "-c", "import program"], "error"),
    ],
)
def test_it_is_as_in_a_python_of_its_own(tmp_path: Path, start: list[str], end: str) -> None:
    (tmp_path / "helper.py").write_text("VALUE = 5\n")
    (tmp_path / "program.py").write_text(PROGRAM + ENDS[end])
    env = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "PYTHONPATH": "", "WORD": "é"}

    def run(env: dict[str, str]) -> tuple[int, str, str]:
        command = [sys.executable, *start, "a b", "--c"]
        done = subprocess.run(command, cwd=tmp_path, env=env, input="given", capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    assert run(warm(env)) == run(env)
