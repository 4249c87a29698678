"""Programs that a job starts: with a limit of time, and none outlives the job."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

# Between a fork and its program a thread of ours must not do anything, so a Python program watches itself:
# the pipe at its standard input is closed when the process that started it is gone. Then its group ends,
# with what it has started; it has to lead a session.
WATCH = """\
import os, signal, threading
threading.Thread(target=lambda: os.read(0, 1) or os.killpg(0, signal.SIGKILL), daemon=True).start()
"""
_OTHER = f"""\
{WATCH}
import subprocess, sys
sys.exit(subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL).returncode)
"""


def run(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], seconds: float
) -> subprocess.CompletedProcess[bytes]:
    """Run any program in a folder; its standard input is empty.

    Raises TimeoutExpired where time is up: then it has ended, with all that it had started. OSError where it
    cannot be started.
    """
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _OTHER, *command],
        cwd=folder,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    watched, process.stdin = process.stdin, None  # communicate() would close it
    try:
        out, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    finally:
        if watched:
            watched.close()
    return subprocess.CompletedProcess(command, process.returncode, out, errors)
