"""Lets npumigrate ask this process where it is: the stacks of its threads, written by Python's fault handler.

That works while a call waits in C code, too, and whoever holds Python's lock.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal

SIGNAL = signal.SIGRTMAX - 3  # a signal that programs have no use for
_file = None


def install() -> None:
    """Be ready to be asked."""
    _open()
    os.register_at_fork(after_in_child=_open)


def _open() -> None:
    """A file of its own for each process; a fork only notes that it is there."""
    global _file
    base = os.path.join(os.environ["NPUMIGRATE_EMULATOR_REPORT"], f"stacks-{os.getpid()}")
    try:
        os.makedirs(os.path.dirname(base), exist_ok=True)
        _file = open(f"{base}.txt", "w", encoding="utf-8")  # noqa: SIM115 (open as long as the process is)
        with open(f"{base}.json", "w", encoding="utf-8") as about:
            json.dump({"process": os.getpid(), "rank": os.environ.get("RANK")}, about)
        faulthandler.register(SIGNAL, _file, all_threads=True, chain=False)
    except (OSError, ValueError, RuntimeError):
        pass
