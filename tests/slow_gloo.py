"""Runs programs on a CPU with a Gloo whose threads are late, as they may be on a busy machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Optional

import pytest

RunSlowly = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def slow_gloo(tmp_path_factory: pytest.TempPathFactory) -> RunSlowly:
    """Runs a Python program, ``late`` in seconds; skips where it cannot be done."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if sys.platform != "linux" or compiler is None:
        pytest.skip("needs Linux and a C compiler")
    library = tmp_path_factory.mktemp("slow_gloo") / "slow_gloo.so"
    source = Path(__file__).with_suffix(".c")
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True)

    def run(
        *command: str,
        cwd: Path,
        env: Optional[Mapping[str, str]] = None,
        late: float = 0.02,
        timeout: float = 60,
    ) -> subprocess.CompletedProcess[str]:
        environment = {
            **os.environ,
            "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
            "CUDA_VISIBLE_DEVICES": "",
            "OMP_NUM_THREADS": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            "LD_PRELOAD": str(library),
            "SLOW_GLOO": str(int(late * 1e6)),
            **(env or {}),
        }
        whole = [sys.executable, *command]
        return subprocess.run(
            whole, cwd=cwd, env=environment, capture_output=True, text=True, timeout=timeout
        )

    return run
