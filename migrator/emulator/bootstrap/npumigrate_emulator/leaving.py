"""Ends a process without torch's destructors: in torch 2.13 that of Gloo may wait for ever."""

from __future__ import annotations

import atexit
import os
import sys
from typing import Any

_needed = False
_status = 0


def install() -> None:
    """Be ready: what is registered first at the start of Python is called last at its end."""
    leave, hook = sys.exit, sys.excepthook

    def leave_with(status: Any = None) -> Any:
        _remember(status if isinstance(status, int) else int(status is not None))
        leave(status)

    def failed(*what: Any) -> None:
        _remember(1)
        hook(*what)

    sys.exit, sys.excepthook = leave_with, failed
    atexit.register(_leave)


def at_once() -> None:
    """Do so at the end of this process."""
    global _needed
    _needed = True


def _remember(status: int) -> None:
    global _status
    _status = status


def _leave() -> None:
    if _needed:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(_status)
