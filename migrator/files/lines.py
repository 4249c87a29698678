"""Byte offsets of a text as lines and columns, and the other way round."""

from __future__ import annotations

from bisect import bisect_right
from typing import Optional

from migrator.files.source import line_starts


class Lines:
    """The lines of a text. Offsets are those of its UTF-8 bytes, ``data``; lines and columns are 1-based."""

    def __init__(self, text: str, data: Optional[bytes] = None) -> None:
        self.data = text.encode("utf-8") if data is None else data
        self.starts = line_starts(self.data)

    def line_of(self, offset: int) -> int:
        """The line of an offset."""
        return bisect_right(self.starts, offset)

    def column_of(self, offset: int) -> int:
        """The column, in characters, of an offset."""
        return self.place(offset)[1]

    def place(self, offset: int) -> tuple[int, int]:
        """The line and the column, in characters, of an offset."""
        line = self.line_of(offset)
        return line, len(self.data[self.starts[line - 1] : offset].decode("utf-8", "replace")) + 1

    def ends(self, span: tuple[int, int]) -> tuple[int, int, int, int]:
        """Line and column of a span's first byte, and of what is behind its last one."""
        (line, column), (end_line, end_column) = self.place(span[0]), self.place(span[1])
        # One number for both, as thousands of findings are kept.
        return line, column, line if line == end_line else end_line, end_column

    def offset(self, line: int, column: int) -> int:
        """The offset of a line and column."""
        start, end = self.span(line, line)
        before = self.data[start:end].decode("utf-8")[: column - 1]
        return start + len(before.encode("utf-8"))

    def span(self, first: int, last: int) -> tuple[int, int]:
        """The bytes of the lines ``first`` to ``last``, their line ends included."""
        end = self.starts[last] if last < len(self.starts) else len(self.data)
        return self.starts[first - 1], end

    def beside(self, span: tuple[int, int]) -> tuple[bytes, bytes]:
        """What stands before a span on its first line, and behind it on its last one, with the line end."""
        start, end = span
        begin, _ = self.span(self.line_of(start), self.line_of(start))
        last = self.line_of(max(end - 1, start))
        return self.data[begin:start], self.data[end : self.span(last, last)[1]]

    def content_end(self, line: int) -> int:
        """The offset behind a line's last character, before its line end."""
        start, end = self.span(line, line)
        return start + len(self.data[start:end].rstrip(b"\r\n"))
