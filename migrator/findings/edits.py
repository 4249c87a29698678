"""The one place that applies edits, and the map of places between the text before and after them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
from itertools import accumulate

from migrator.findings.finding import Edit
from migrator.light import NamedTuple


class Occupied:
    """The places of the edits that were accepted so far."""

    def __init__(self) -> None:
        self._edits: list[Edit] = []  # in order

    def add(self, edits: Iterable[Edit]) -> bool:
        """Occupy the places of all edits, or none where one of them is occupied; says which.

        Two insertions at one place count as touching: their order would matter.
        """
        edits = list(edits)
        for edit in edits:
            place = bisect_left(self._edits, edit)
            # Occupied places do not overlap, so only the neighbours can be in the way.
            for start, end, _text in self._edits[max(0, place - 2) : place + 2]:
                if start == end == edit.start == edit.end or (edit.start < end and start < edit.end):
                    return False
        for edit in edits:
            insort(self._edits, edit)
        return True


def in_order(edits: Iterable[Edit]) -> list[Edit]:
    """Each edit once, in the order of the text: several fixes may share the import that they need."""
    return sorted(dict.fromkeys(edits), key=lambda edit: (edit.start, edit.end))


def extent(edits: Iterable[Edit]) -> tuple[int, int]:
    """From where to where some edits go."""
    starts, ends = zip(*((edit.start, edit.end) for edit in edits))
    return min(starts), max(ends)


def part_with(data: bytes, span: tuple[int, int], edits: Iterable[Edit]) -> str:
    """The text of a part of the data, with edits made that lie in it."""
    start, end = span
    moved = [Edit(edit.start - start, edit.end - start, edit.text) for edit in edits]
    return apply(data[start:end], moved).decode("utf-8")


def apply(data: bytes, edits: Iterable[Edit]) -> bytes:
    """The data with all edits made; they must not overlap."""
    pieces = []
    position = 0
    for edit in in_order(edits):
        pieces.append(data[position : edit.start])
        pieces.append(edit.text.encode("utf-8"))
        position = edit.end
    pieces.append(data[position:])
    return b"".join(pieces)


class _Step:
    """The map of one round of edits."""

    def __init__(self, edits: Iterable[Edit]) -> None:
        ordered = in_order(edits)
        self.starts = [edit.start for edit in ordered]
        self.ends = [edit.end for edit in ordered]
        sizes = [len(edit.text.encode("utf-8")) for edit in ordered]
        longer = (size - (edit.end - edit.start) for edit, size in zip(ordered, sizes))
        self.new_starts = [start + shift for start, shift in zip(self.starts, accumulate(longer, initial=0))]
        self.new_ends = [start + size for start, size in zip(self.new_starts, sizes)]

    def forward(self, offset: int, behind: bool) -> int:
        # The last edit that starts before the offset; or at it, where what is inserted there counts.
        place = bisect_right(self.starts, offset) - 1
        while place >= 0 and self.starts[place] == offset and not (behind and self.ends[place] == offset):
            place -= 1
        if place < 0:
            return offset
        if offset >= self.ends[place]:
            return self.new_ends[place] + offset - self.ends[place]
        return self.new_ends[place] if behind else self.new_starts[place]

    def back(self, offset: int) -> int:
        place = bisect_right(self.new_starts, offset) - 1
        if place < 0:
            return offset
        if offset < self.new_ends[place]:
            return self.starts[place]
        return self.ends[place] + offset - self.new_ends[place]

    def replaced(self, offset: int) -> tuple[int, int] | None:
        place = bisect_right(self.new_starts, offset) - 1
        if place < 0 or offset >= self.new_ends[place]:
            return None
        return self.starts[place], self.ends[place]


class OffsetMap(NamedTuple):
    """Byte offsets of a text and of what became of it in some rounds of edits, both ways."""

    steps: tuple[_Step, ...] = ()

    def then(self, edits: Iterable[Edit]) -> OffsetMap:
        """The map with one more round of edits, which are about the text as it is by now."""
        return OffsetMap((*self.steps, _Step(edits)))

    def forward(self, offset: int, behind: bool = False) -> int:
        """Where an offset of the first text is in the last one.

        ``behind``: behind what is inserted right there, and behind what replaces the text around it.
        """
        for step in self.steps:
            offset = step.forward(offset, behind)
        return offset

    def back(self, offset: int) -> int:
        """Where an offset of the last text was in the first one; of new text, where it was put."""
        for step in reversed(self.steps):
            offset = step.back(offset)
        return offset

    def replaced(self, offset: int) -> tuple[int, int] | None:
        """The span before the last round of edits that the new text around an offset stands for.

        None where the offset is in text that stood there before.
        """
        return self.steps[-1].replaced(offset) if self.steps else None


def line_edits(old: bytes, new: bytes) -> list[Edit]:
    """The edits that make one text of another, by lines; what is inserted belongs to the line before it."""
    from difflib import SequenceMatcher  # few files need it

    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    starts = [0, *accumulate(map(len, before))]
    edits = []
    for kind, first, last, begin, end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        start, stop, text = starts[first], starts[last], b"".join(after[begin:end])
        if kind == "insert" and first:
            newline = before[first - 1][len(before[first - 1].rstrip(b"\r\n")) :]
            start = stop = start - len(newline)
            text = newline + text[: len(text) - len(newline)]
        elif kind == "replace" and text.endswith(b"\n") and before[last - 1].endswith(b"\n"):
            stop, text = stop - 1, text[:-1]
        if kind != "equal":
            edits.append(Edit(start, stop, text.decode("utf-8")))
    return edits
