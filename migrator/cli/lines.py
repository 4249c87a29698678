"""Lines for people: on a terminal as wide as that is, in a pipe or a file whole."""

from __future__ import annotations

import shutil
import sys
from typing import TextIO

from migrator.wrapping import wrap


def wrapped(text: str, indent: str = "", stream: TextIO | None = None) -> str:
    """A line, on a terminal as many as its width asks for; names and paths stay whole.

    ``stream`` is where it is printed, the standard output without one.
    """
    if not (stream or sys.stdout).isatty():
        return indent + text
    width = shutil.get_terminal_size().columns
    return "\n".join(wrap(text, width, indent, indent or "  "))
