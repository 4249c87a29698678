"""A test that runs out of time takes with it all that it has started."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")
ROOT = Path(__file__).parents[1]
TEST = '''
import subprocess, sys
from tests.leftovers import mark, pytest_runtest_makereport, pytest_runtest_setup

RANK = "import os, time; print(os.getpid(), flush=True); time.sleep(100)"
LAUNCHER = f"""import subprocess, sys
subprocess.call([sys.executable, "-c", {RANK!r}], start_new_session=True)"""
'''
HANGS = """
def test_hangs():
    with open("pids", "w") as file:
        subprocess.run([sys.executable, "-c", LAUNCHER], stdout=file, timeout=3)
"""


def test_a_rank_in_a_session_of_its_own_ends_with_the_test(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(f"{TEST}\nmark()\n")
    (tmp_path / "test_it.py").write_text(TEST + HANGS)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path)]
    done = subprocess.run(
        [*command, str(tmp_path)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert "TimeoutExpired" in done.stdout
    assert "processes that were left, and killed" in done.stdout
    (rank,) = (tmp_path / "pids").read_text().split()
    end = time.monotonic() + 5
    while Path("/proc", rank).exists() and time.monotonic() < end:
        time.sleep(0.05)
    assert not Path("/proc", rank).exists()
