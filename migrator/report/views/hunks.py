"""A file's changes side by side, with the lines around them and what is left to a person.

Where the original is still there the two files are compared. Else Before and After of the tables are put
in their places in the file as it is now; where that was edited since, a change stands alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import NamedTuple, Optional

_AROUND = 2  # lines shown before and after
_WINDOW = 12  # how far from its place a change is looked for: rows leave out empty lines
_LONGEST = 400  # characters of a line that are shown


class Place(NamedTuple):
    """A row of the tables: a change, or what is left to a person."""

    change: bool
    line: int
    end_line: int
    code: str
    severity: str
    api: str
    message: str
    advice: str
    safety: str
    before: str
    after: str
    operation: str
    mark: str = ""


class Line(NamedTuple):
    """A line of a hunk: its number and text on both sides, None where a side has none."""

    old: Optional[int]
    new: Optional[int]
    before: Optional[str]
    after: Optional[str]

    @property
    def changed(self) -> bool:
        """Whether the sides differ."""
        return self.before != self.after


class Hunk(NamedTuple):
    """Lines that are shown together, and the places that they are about."""

    lines: list[Line]
    places: list[Place]

    @property
    def line(self) -> int:
        """The line of the input that it is named by."""
        return self.places[0].line if self.places else 0


class _Span(NamedTuple):
    """A change in its place: lines ``old`` of the input and ``new`` of the result, ends excluded, from 1."""

    old: tuple[int, int]
    new: tuple[int, int]
    before: list[str]
    after: list[str]


def hunks_of(
    places: Iterable[Place], lines: Optional[Sequence[str]], original: Optional[Sequence[str]] = None
) -> list[Hunk]:
    """The hunks of a file, or of a notebook's cell, from its lines in the result and in the original."""
    ordered = sorted(places, key=lambda place: (place.line, -place.end_line, not place.change))
    changes = [place for place in ordered if place.change]
    spans = None if lines is None else _compared(changes, lines, original) or _spans(changes, lines)
    found = [] if lines is None or spans is None else _joined(ordered, spans, lines)
    return found or [Hunk(_alone(place), [place]) for place in ordered]


def _compared(
    changes: Sequence[Place], lines: Sequence[str], original: Optional[Sequence[str]]
) -> Optional[list[_Span]]:
    """What differs between two files; None where one is not the file that was changed."""
    if original is None:
        return None
    for place in changes:
        there = "\n".join(original[place.line - 1 : place.end_line]).strip()
        # Of very long lines the tables hold only what changes.
        if place.operation != "INSERT" and place.before not in there:
            return None
    matcher = SequenceMatcher(None, original, lines)
    return [
        _Span((old + 1, old_end + 1), (new + 1, new_end + 1), [*original[old:old_end]], [*lines[new:new_end]])
        for tag, old, old_end, new, new_end in matcher.get_opcodes()
        if tag != "equal"
    ]


def _spans(changes: Sequence[Place], lines: Sequence[str]) -> Optional[list[_Span]]:
    """The changes where they are in the result; None where one is not to be found there.

    Of changes that overlap the one with the most lines counts; insertions stand behind their line.
    """
    kept: list[Place] = []
    for place in (each for each in changes if each.operation != "INSERT"):
        if not any(each.line <= place.line and place.end_line <= each.end_line for each in kept):
            kept.append(place)
    kept += {each.line: each for each in changes if each.operation == "INSERT"}.values()
    spans: list[_Span] = []
    shift, end = 0, 0
    for place in sorted(kept, key=lambda each: (each.line, each.operation == "INSERT", each.end_line)):
        before, after = _text_lines(place.before), _text_lines(place.after)
        first, last = place.line, place.end_line + 1
        if place.operation == "INSERT":
            first = last = place.line + 1
            before = []
        at = _found(lines, after, first + shift, max(end, 1))
        if at is None:
            return None
        if before and after:
            indent = lines[at - 1][: len(lines[at - 1]) - len(lines[at - 1].lstrip())]
            before = [indent + before[0], *before[1:]]
        new = list(lines[at - 1 : at - 1 + len(after)])
        spans.append(_Span((first, last), (at, at + len(after)), before, new))
        end = at + len(after)
        shift = end - last
    return spans


def _text_lines(text: str) -> list[str]:
    return text.split("\n") if text else []


def _found(lines: Sequence[str], after: Sequence[str], at: int, least: int) -> Optional[int]:
    """The line near ``at``, and not before ``least``, where these lines stand."""
    wanted = [line.strip() for line in after]
    if not wanted:
        return at if least <= at <= len(lines) + 1 else None
    for distance in range(_WINDOW):
        for first in dict.fromkeys((at + distance, at - distance)):
            there = lines[first - 1 : first - 1 + len(wanted)] if first >= least else []
            if [line.strip() for line in there] == wanted:
                return first
    return None


def _joined(places: Sequence[Place], spans: Sequence[_Span], lines: Sequence[str]) -> list[Hunk]:
    """Hunks with the lines around, those that touch one another as one."""
    rows: list[Line] = []  # of the whole file
    shown: set[int] = set()  # those of them that are
    at, shift = 1, 0
    behind = len(lines) + 1
    for span in (*spans, None):
        shift = span.old[0] - span.new[0] if span else shift
        for number in range(at, span.new[0] if span else behind):
            text = _cut(lines[number - 1])
            rows.append(Line(number + shift, number, text, text))
        if span:
            first = len(rows)
            rows += _sides(span)
            shown.update(range(first - _AROUND, len(rows) + _AROUND))
            at, shift = span.new[1], span.old[1] - span.new[1]
    row_of = {row.old: number for number, row in enumerate(rows)}
    found = (row_of.get(place.line) for place in places if not place.change)
    for row in found:
        shown.update(range(row - _AROUND, row + _AROUND + 1) if row is not None else ())
    hunks: list[Hunk] = []
    for number in (number for number in range(len(rows)) if number in shown):
        if not hunks or number - 1 not in shown:
            hunks.append(Hunk([], []))
        hunks[-1].lines.append(rows[number])
    waiting = list(places)
    for hunk in hunks:
        limit = max((row.old for row in hunk.lines if row.old is not None), default=0)
        hunk.places.extend(place for place in waiting if place.line <= limit or hunk is hunks[-1])
        waiting = [place for place in waiting if place.line > limit]
    return hunks


def _sides(span: _Span) -> Iterator[Line]:
    """The two sides of a change: lines that are the same stand beside each other."""
    keys = [line.strip() for line in span.before], [line.strip() for line in span.after]
    for _, first, last, start, end in SequenceMatcher(None, *keys, autojunk=False).get_opcodes():
        old = [(span.old[0] + place, _cut(span.before[place])) for place in range(first, last)]
        new = [(span.new[0] + place, _cut(span.after[place])) for place in range(start, end)]
        for (number, before), (place, after) in zip_longest(old, new, fillvalue=(None, None)):
            yield Line(number, place, before, after)


def _alone(place: Place) -> list[Line]:
    """The lines of a change without those around; none of a finding."""
    if not place.change:
        return []
    before, after = _text_lines(place.before), _text_lines(place.after)
    span = _Span((place.line, place.end_line + 1), (place.line, place.line), before, after)
    return [line._replace(new=None) for line in _sides(span)]


def _cut(line: str) -> str:
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
