from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Optional

import pytest

from migrator.emulator.installed import EmulatorError, look

HERE = Path(__file__).parent
# Tests that themselves run on the emulated NPU: see test_on_npu.py.
collect_ignore = [] if "NPUMIGRATE_EMULATOR" in os.environ else ["on_npu"]

Emulate = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def cache(request: pytest.FixtureRequest) -> Path:
    """A cache folder that later runs of the tests use again."""
    return Path(request.config.cache.mkdir("emulator"))


@pytest.fixture(scope="session")
def emulate(cache: Path) -> Emulate:
    """Runs a command on emulated NPUs: its arguments, and options of `npumigrate emulate` before them.

    ``how`` names another command, `verify`.
    """
    try:
        look()
    except EmulatorError as error:
        pytest.skip(str(error))

    def run(
        *command: str,
        options: tuple[str, ...] = (),
        how: str = "emulate",
        env: Optional[Mapping[str, str]] = None,
        cwd: Path = HERE,
        timeout: float = 240,
    ) -> subprocess.CompletedProcess[str]:
        whole = [sys.executable, "-m", "migrator", how, *options, "--", *command]
        environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "OMP_NUM_THREADS": "1", **(env or {})}
        process = subprocess.Popen(
            whole,
            cwd=cwd,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            # torchrun gives each rank a session of its own, and ends them when it is asked to end.
            os.killpg(process.pid, signal.SIGTERM)
            out, err = process.communicate(timeout=60)
            err += f"\nended after {timeout} s"
        return subprocess.CompletedProcess(whole, process.returncode, out, err)

    ready = run("python", "-c", "pass", timeout=900)  # it builds the emulated NPU, once
    assert ready.returncode == 0, ready.stderr
    return run
