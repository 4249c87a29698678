"""A document's text, and its places as an editor counts them.

Lines end where they do for Python (and for the protocol), not where str.splitlines says:
a form feed ends none. Columns count in the units that were agreed on with the editor.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Optional

from lsprotocol import types

from migrator.files.source import LINE_END, whole_lines
from migrator.findings.finding import Place

UTF8, UTF16, UTF32 = "utf-8", "utf-16", "utf-32"


class Text:
    """A text whose places are those of an editor; ``units`` is utf-8, utf-16 or utf-32."""

    def __init__(self, text: str, units: str = UTF16) -> None:
        self.text = text
        self._units = units
        self._starts = [0, *(match.end() for match in LINE_END.finditer(text))]

    def offset(self, place: types.Position) -> int:
        """The index of an editor's place; what lies behind a line's or the text's end is its end."""
        if place.line >= len(self._starts):
            return len(self.text)
        start = self._starts[place.line]
        line = self.text[start : self._start_of(place.line + 1)].rstrip("\r\n")
        if self._units == UTF32 or line.isascii():
            return start + min(place.character, len(line))
        left = place.character
        for column, char in enumerate(line):
            if left <= 0:
                return start + column
            left -= _size(char, self._units)
        return start + len(line)

    def place(self, offset: int) -> types.Position:
        """The editor's place of an index."""
        row = bisect_right(self._starts, offset) - 1
        before = self.text[self._starts[row] : offset]
        return types.Position(row, _size(before, self._units))

    def position(self, offset: int) -> Place:
        """The row and column, as findings have them, of an index."""
        row = bisect_right(self._starts, offset)
        return (row, offset - self._starts[row - 1] + 1)

    def index(self, place: Place) -> int:
        """The index of a finding's row and column; behind the end, the end."""
        if place[0] > len(self._starts):
            return len(self.text)
        return min(self._starts[place[0] - 1] + place[1] - 1, len(self.text))

    def span(self, start: Place, end: Place) -> types.Range:
        """The editor's range between two places of a finding."""
        return types.Range(self.place(self.index(start)), self.place(self.index(end)))

    def changed(self, span: Optional[types.Range], new: str) -> Text:
        """The text with a range of it replaced; without a range, all of it."""
        if span is None:
            return Text(new, self._units)
        start, end = self.offset(span.start), self.offset(span.end)
        return Text(self.text[:start] + new + self.text[max(start, end) :], self._units)

    def edits_to(self, new: str) -> list[types.TextEdit]:
        """The replacements that make ``new`` of this text, one for each run of changed lines."""
        old_lines, new_lines = whole_lines(self.text), whole_lines(new)
        changes = SequenceMatcher(None, old_lines, new_lines).get_opcodes()
        return [
            self._edit(self._start_of(first), self._start_of(last), "".join(new_lines[new_first:new_last]))
            for tag, first, last, new_first, new_last in changes
            if tag != "equal"
        ]

    def _edit(self, start: int, end: int, new: str) -> types.TextEdit:
        """A replacement, without what it has in common with the old text at its ends: cursors stay there."""
        old = self.text[start:end]
        head = old[: same_start(old, new)].rstrip("\r")  # no \r\n is split
        old, new = old[len(head) :], new[len(head) :]
        tail = old[len(old) - same_start(old[::-1], new[::-1]) :]
        tail = tail.lstrip("\n") if "\r" in old + new else tail
        span = types.Range(self.place(start + len(head)), self.place(end - len(tail)))
        return types.TextEdit(span, new[: len(new) - len(tail)])

    def _start_of(self, row: int) -> int:
        return self._starts[row] if row < len(self._starts) else len(self.text)


def _size(text: str, units: str) -> int:
    if units == UTF32 or text.isascii():
        return len(text)
    if units == UTF8:
        return len(text.encode("utf-8", "surrogatepass"))
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def same_start(one: Sequence[str], other: Sequence[str]) -> int:
    """How many lines of two lists, or characters of two texts, are the same from the first on."""
    most = min(len(one), len(other))
    return next((at for at in range(most) if one[at] != other[at]), most)
