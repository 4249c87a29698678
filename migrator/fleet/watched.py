"""Programs that a job starts: with limits of time and memory, and none outlives the job."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import NamedTuple, Optional

_PAUSE = 0.02  # seconds between two looks at a program
# Between a fork and its program a thread of ours must not do anything, so a Python program watches and limits
# itself: the pipe at its standard input is closed when the process that started it is gone. Then its group
# ends, with what it has started; it has to lead a session.
_WATCHED = """\
import os, resource, signal, subprocess, sys, threading
threading.Thread(target=lambda: os.read(0, 1) or os.killpg(0, signal.SIGKILL), daemon=True).start()
memory = int(sys.argv[1])
if memory:
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
code = subprocess.run(sys.argv[2:], stdin=subprocess.DEVNULL).returncode
if code < 0:
    os.kill(os.getpid(), -code)
sys.exit(code)
"""


class Finished(NamedTuple):
    """How a program ended: its exit code, None where time was up; what it printed; processor seconds."""

    code: Optional[int]
    out: bytes
    errors: bytes
    cpu: float


def run(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], seconds: float, memory: int = 0
) -> Finished:
    """Run any program in a folder, with ``memory`` bytes where that is not 0; its standard input is empty.

    Where time is up it ends with all that it had started. Raises OSError where Python cannot be started.
    """
    with TemporaryFile() as out, TemporaryFile() as errors:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _WATCHED, str(memory), *command],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=errors,
            start_new_session=True,
        )
        assert process.stdin
        end, late, pid = time.monotonic() + seconds, False, 0
        with process.stdin:
            while not pid:
                pid, status, usage = os.wait4(process.pid, os.WNOHANG)
                if not pid and not late and time.monotonic() > end:
                    late = True
                    os.killpg(process.pid, signal.SIGKILL)
                time.sleep(0 if pid else _PAUSE)
        process.returncode = os.waitstatus_to_exitcode(status)
        for file in (out, errors):
            file.seek(0)
        code = None if late else process.returncode
        return Finished(code, out.read(), errors.read(), usage.ru_utime + usage.ru_stime)
