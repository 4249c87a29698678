"""Lines that fit a terminal, where a Chinese character is as wide as two letters."""

from __future__ import annotations

import re
from collections.abc import Callable
from unicodedata import east_asian_width

_WIDE = "\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff\uff00-\uff60"
# What stays on one line: a wide character with the punctuation behind it, or letters up to the next blank.
_PARTS = re.compile(
    rf"[（《“]?[{_WIDE}][，。；：！？、）》”…,.;:!?)]*|[^\s{_WIDE}]+[，。；：！？、）》”]*|\s+"
)


def columns(text: str) -> int:
    """How many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(2 if east_asian_width(sign) in "WF" else 1 for sign in text)


def padded(text: str, width: int) -> str:
    """A text with blanks behind it, up to a width."""
    return text + " " * (width - columns(text))


def wrap(
    text: str, width: int, first: str = "", others: str = "", shown: Callable[[str], str] = str
) -> list[str]:
    """The lines of a text, with what stands before the ``first`` and the ``others``.

    Names and paths stay whole, even where they are longer than a line. ``shown`` gives what of a text is
    seen: it may hold colours.
    """
    lines: list[str] = []
    line, empty, blank = first, True, ""
    for part in _PARTS.findall(text):
        if part.isspace():
            blank = " "
            continue
        if not empty and columns(shown(line)) + len(blank) + columns(shown(part)) > width:
            lines.append(line)
            line, empty = others, True
        line += part if empty else blank + part
        empty, blank = False, ""
    return lines if empty else [*lines, line]
