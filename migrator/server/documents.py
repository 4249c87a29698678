"""The documents that an editor has open: a file's text, or the cells of a notebook, and places in them.

Lines end where they do for Python (and for the protocol), not where str.splitlines says:
a form feed ends none. Columns count in the units that were agreed on with the editor.
"""

from __future__ import annotations

import asyncio
import os
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Optional

from lsprotocol import types
from pygls.uris import to_fs_path
from pygls.workspace import PositionCodec

from migrator.core.changes import placed_edits
from migrator.files.document import Document as FileDocument
from migrator.files.document import type_of
from migrator.files.notebook import Notebook, of_cells
from migrator.files.source import LINE_END, Source, whole_lines
from migrator.findings.finding import Finding, Place

if TYPE_CHECKING:
    from migrator.server.analysis import Analysis

UTF8, UTF16, UTF32 = "utf-8", "utf-16", "utf-32"
_FIRST_LINE = 256  # characters in which a #! line ends


class Text:
    """A text whose places are those of an editor; ``units`` is utf-8, utf-16 or utf-32."""

    def __init__(self, text: str, units: str = UTF16) -> None:
        self.text = text
        self._units = units
        self._codec = PositionCodec(units)
        self._starts = [0, *(match.end() for match in LINE_END.finditer(text))]

    def offset(self, place: types.Position) -> int:
        """The index of an editor's place; what lies behind a line's or the text's end is its end."""
        if place.line >= len(self._starts):
            return len(self.text)
        start = self._starts[place.line]
        line = self.text[start : self._start_of(place.line + 1)].rstrip("\r\n")
        if line.isascii():
            return start + min(place.character, len(line))
        units = [*accumulate(map(self._codec.client_num_units, line), initial=0)]
        return start + min(bisect_left(units, place.character), len(line))

    def place(self, offset: int) -> types.Position:
        """The editor's place of an index."""
        row = bisect_right(self._starts, offset) - 1
        before = self.text[self._starts[row] : offset]
        return types.Position(row, self._codec.client_num_units(before))

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


def same_start(one: Sequence[str], other: Sequence[str]) -> int:
    """How many lines of two lists, or characters of two texts, are the same from the first on."""
    most = min(len(one), len(other))
    return next((at for at in range(most) if one[at] != other[at]), most)


@dataclass
class Part:
    """What has a URI and a message text: a file, or a code cell of a notebook."""

    uri: str
    version: Optional[int]
    text: Text

    def change(self, version: Optional[int], changes: Iterable[types.TextDocumentContentChangeEvent]) -> None:
        """Take over what was typed."""
        for change in changes:
            self.text = self.text.changed(getattr(change, "range", None), change.text)
        self.version = version


@dataclass
class Document:
    """An open document: one part, or the code cells of a ``notebook`` in their order.

    The number of a cell is its place among them, from 1 on.
    """

    uri: str
    place: Path
    parts: list[Part]
    notebook: bool = False
    analysis: Optional[Analysis] = None
    waiting: Optional[asyncio.Task[None]] = None

    def texts(self) -> list[Text]:
        """What it says now: equal lists are the same text."""
        return [part.text for part in self.parts]

    def content(self) -> Source | Notebook:
        """What is to be linted."""
        if not self.notebook:
            text, name = self.parts[0].text.text, str(self.place)
            start = text[:_FIRST_LINE].encode("utf-8", "replace")
            return Source(name, text, type=type_of(name, start))
        sources = [part.text.text for part in self.parts]
        cells = ((number, (0, 0), source) for number, source in enumerate(sources, 1))
        return of_cells(str(self.place), "\n".join(sources), cells)

    def number(self, part: Part) -> Optional[int]:
        """The number that findings have for a part: that of the cell, None in a file."""
        return self.parts.index(part) + 1 if self.notebook else None

    def part_of(self, cell: Optional[int]) -> Part:
        """The part with a number."""
        return self.parts[(cell or 1) - 1]

    def fix_edits(self, item: Finding) -> list[tuple[Part, types.TextEdit]]:
        """The edits of a finding's fix; those in a notebook may be in several cells."""
        found = []
        whole = FileDocument(b"", self.content())
        for edit in placed_edits(whole, whole.lines, item.fix) if item.fix else ():
            part = self.part_of(edit.cell)
            found.append((part, types.TextEdit(part.text.span(edit.start, edit.end), edit.text)))
        return found

    def edits_to(self, new: Iterable[tuple[Optional[int], str]]) -> list[tuple[Part, types.TextEdit]]:
        """The edits that give parts, by their numbers, a new text."""
        pairs = ((self.part_of(cell), text) for cell, text in new)
        return [(part, edit) for part, text in pairs for edit in part.text.edits_to(text)]


def whole_offset(content: Source | Notebook, cell: Optional[int], text: Text, offset: int) -> Optional[int]:
    """The index in all of a content's text of an index in one of its parts.

    None where the text has another line there: for a magic, and a cell in another language.
    """
    if isinstance(content, Source):
        return offset
    line, _ = text.position(offset)
    first = next(each.first for each in content.cells if each.number == cell)
    whole = Text(content.text)
    start = whole.index((first + line - 1, 1))
    line_start = text.index((line, 1))
    line_end = text.index((line + 1, 1))
    same = content.text.startswith(text.text[line_start:line_end].rstrip("\r\n"), start)
    return start + offset - line_start if same else None


def place_of(uri: str, otherwise: str) -> Path:
    """Where a document lies; what is not saved yet has another name in the current folder."""
    path = to_fs_path(uri)
    return Path(os.path.abspath(path if uri.startswith("file:") and path else otherwise))
