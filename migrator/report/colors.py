"""Colours on terminals."""

from __future__ import annotations

import os
import re
import sys

from migrator.files.errors import harmless

_CODES = {"bold": 1, "red": "1;31", "yellow": "1;33", "blue": "1;34", "cyan": 36, "green": 32, "dim": 2}

# How lines of a unified diff begin, with their colours.
_DIFF = ((b"--- ", 1), (b"+++ ", 1), (b"@@ ", 36), (b"-", 31), (b"+", 32))


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


def diff_for_terminal(data: bytes, color: str = "auto") -> bytes:
    """A unified diff as the standard output should have it: in colours on a terminal that has them.

    ``color`` is what a user said of colours: ``auto``, ``always`` or ``never``.
    """
    if sys.stdout.isatty():  # a program gets every byte; on a terminal, nothing of a file may control it
        data = harmless(data.decode("utf-8", "backslashreplace")).encode("utf-8")
    if color == "never" or (color == "auto" and not (wanted() and sys.stdout.isatty())):
        return data
    return re.sub(rb"[^\r\n]+", _painted, data)


def _painted(line: re.Match[bytes]) -> bytes:
    code = next((code for start, code in _DIFF if line[0].startswith(start)), 0)
    return b"\x1b[%dm%s\x1b[0m" % (code, line[0]) if code else line[0]
