"""Processes that have torch already, and run the tests' programs: its import takes two seconds each."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent
# What each kind of process has imported.
_TORCH = ("numpy", "torch", "torch._dynamo", "torch.distributed", "torch.distributed.run")
_MODULES = {
    "cpu": _TORCH,
    "npu": (*_TORCH, "torch_npu"),
    "editor": (
        "pygls.lsp.server",
        "migrator.server.session",
        "migrator.core.check",
        "migrator.matchers.packs",
    ),
}
_MARK = "NPUMIGRATE_TESTED_BY"  # what bears it ends with a test that fails


def warm(env: Mapping[str, str], kind: str = "cpu") -> dict[str, str]:
    """The environment in which the program of each Python below is run by a process that has its imports.

    ``cpu``: of programs that ask torch not to load torch_npu (``TORCH_DEVICE_BACKEND_AUTOLOAD=0``). ``npu``:
    of programs on emulated NPUs. ``editor``: of ``npumigrate server``.
    """
    needed = _MODULES[kind][-1].partition(".")[0]
    if sys.version_info < (3, 10) or not sys.platform.startswith("linux") or find_spec(needed) is None:
        return dict(env)
    _start(_folder() / kind, env.get("XDG_CACHE_HOME", ""))
    behind = [path for path in env.get("PYTHONPATH", "").split(os.pathsep) if path not in ("", str(HERE))]
    path = os.pathsep.join([str(HERE), *behind])
    return {**env, "NPUMIGRATE_WARM": str(_folder()), "PYTHONPATH": path}


@cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="npumigrate-warm-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def _start(socket: Path, cache_folder: str) -> None:
    """Start what listens at a socket, and ends when this process does."""
    env = {key: value for key, value in os.environ.items() if key != _MARK}
    env |= {"OMP_NUM_THREADS": "1", "XDG_CACHE_HOME": cache_folder}
    command = [sys.executable]
    if socket.name == "npu":
        # What the emulator does when torch is imported is done in the children.
        command = [*command, "-m", "migrator", "emulate", "--", "env", "-u", "PYTHONPATH", *command]
    else:
        ours = str(HERE.parents[1]) if socket.name == "editor" else ""
        env |= {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": ours}
    server = subprocess.Popen(
        [*command, str(HERE / "server.py"), str(socket), *_MODULES[socket.name]],
        env=env,
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    while not socket.exists():
        assert server.poll() is None, "the process with torch did not start"
        time.sleep(0.05)
