"""Ends a process without the destructor of Gloo's process groups, which in torch 2.13 may wait for ever.

Where a Reducer of DistributedDataParallel is the last to hold a group, the destructor holds Python's lock and
waits for Gloo's threads; and one of these may want that lock, to drop a tensor of the last collective.
"""

from __future__ import annotations

import atexit
import builtins
import os
import sys
from typing import Any

_groups: list[Any] = []  # never dropped
_status = 0


def install() -> None:
    """Be ready: what is registered first at the start of Python is called last at its end."""
    leave, hook = sys.exit, sys.excepthook
    changed: Any = builtins

    def leave_with(status: Any = None) -> Any:
        _remember(status if isinstance(status, int) else int(status is not None))
        leave(status)

    def failed(*what: Any) -> None:
        _remember(1)
        hook(*what)

    sys.exit, sys.excepthook = leave_with, failed
    changed.exit = changed.quit = leave_with
    atexit.register(_leave)


def keep(group: Any) -> None:
    """Keep a process group as long as this process runs, which then ends without torch's destructors."""
    _groups.append(group)


def _remember(status: int) -> None:
    global _status
    _status = status


def _leave() -> None:
    if _groups:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(_status)
