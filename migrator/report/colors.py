"""Colours on terminals."""

from __future__ import annotations

import os
import re
import sys

from migrator.files.errors import harmless

_CODES = {"bold": 1, "red": "1;31", "yellow": "1;33", "blue": "1;34", "cyan": 36, "green": 32, "dim": 2}


def paint(text: str, style: str, color: bool = True) -> str:
    """``text`` in a style, or as it is where ``color`` is off."""
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if color and text else text


def plain(text: str) -> str:
    """What ``paint`` was given."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def wanted() -> bool:
    """Whether to print in colours: as NO_COLOR or FORCE_COLOR say, or on a terminal that has them."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (sys.stdout.isatty() and os.environ.get("TERM") != "dumb")


def for_terminal(data: bytes) -> bytes:
    """Lines of files as the standard output should have them.

    A program gets every byte. On a terminal, nothing of a file may control it.
    """
    if not sys.stdout.isatty():
        return data
    return harmless(data.decode("utf-8", "backslashreplace")).encode("utf-8")
