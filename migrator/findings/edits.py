"""Applying edits, and finding a place of the new text in the old one."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Sequence
from typing import Callable

from migrator.findings.finding import Edit


class Taken:
    """The places of the edits that were accepted so far."""

    def __init__(self) -> None:
        self._places: list[tuple[int, int]] = []

    def add(self, edits: Iterable[Edit]) -> bool:
        """Take the places of all edits, or none where one of them is taken; says which.

        Two insertions at one place count as touching: their order would matter.
        """
        edits = list(edits)
        if any(self._touches(edit) for edit in edits):
            return False
        for edit in edits:
            insort(self._places, (edit.start, edit.end))
        return True

    def _touches(self, edit: Edit) -> bool:
        place = bisect_left(self._places, (edit.start, edit.end))
        # Taken places do not overlap, so only the neighbours can be in the way.
        for start, end in self._places[max(0, place - 2) : place + 2]:
            if start == end == edit.start == edit.end or (edit.start < end and start < edit.end):
                return True
        return False


def apply(data: bytes, edits: Sequence[Edit]) -> bytes:
    """The data with all edits made; they must not overlap."""
    pieces = []
    position = 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        pieces.append(data[position : edit.start])
        pieces.append(edit.text.encode("utf-8"))
        position = edit.end
    pieces.append(data[position:])
    return b"".join(pieces)


def back_mapping(edits: Sequence[Edit]) -> Callable[[int], int]:
    """A function from an offset behind the edits to the offset before them."""
    starts: list[int] = []
    steps: list[tuple[int, int, int]] = []  # new start, new end, old end
    shift = 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        size = len(edit.text.encode("utf-8"))
        new_start = edit.start + shift
        starts.append(new_start)
        steps.append((edit.start, new_start + size, edit.end))
        shift += size - (edit.end - edit.start)

    def old_offset(offset: int) -> int:
        place = bisect_right(starts, offset) - 1
        if place < 0:
            return offset
        old_start, new_end, old_end = steps[place]
        return old_start if offset < new_end else old_end + offset - new_end

    return old_offset
