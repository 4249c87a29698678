"""A file's changes side by side, with the lines around them and what is left to a person.

Where the original is still there the two files are compared. Else Before and After of the tables are put
in their places in the file as it is now; where that was edited since, a change stands alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any, NamedTuple, Optional

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


@dataclass
class Hunk:
    """Lines that are shown together, and the places that they are about."""

    lines: list[Line] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)

    @property
    def line(self) -> int:
        """The line of the input that it is named by."""
        return self.places[0].line if self.places else 0


@dataclass
class _Span:
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
    if lines is None or spans is None:
        return list(_alone(ordered))
    return _joined(ordered, spans, lines)


def _compared(
    changes: Sequence[Place], lines: Sequence[str], original: Optional[Sequence[str]]
) -> Optional[list[_Span]]:
    """What differs between two files; None where one is not that of which the changes tell."""
    if original is None:
        return None
    for place in changes:
        there = "\n".join(original[place.line - 1 : place.end_line]).strip()
        # Of very long lines only what changes is told.
        if place.operation != "INSERT" and place.before not in there:
            return None
    matcher = SequenceMatcher(None, original, lines)
    return [
        _Span((old + 1, old_end + 1), (new + 1, new_end + 1), [*original[old:old_end]], [*lines[new:new_end]])
        for tag, old, old_end, new, new_end in matcher.get_opcodes()
        if tag != "equal"
    ]


def _spans(changes: Sequence[Place], lines: Sequence[str]) -> Optional[list[_Span]]:
    """The changes where they are in the result; None where one is not to be found there."""
    spans: list[_Span] = []
    shift, end = 0, 0
    for place in _widest(changes):
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


def _widest(changes: Sequence[Place]) -> list[Place]:
    """Of changes that overlap the one with the most lines; insertions stand behind their line."""
    kept: list[Place] = []
    inserted: dict[int, Place] = {}
    for place in changes:
        if place.operation == "INSERT":
            inserted[place.line] = place
        elif not any(each.line <= place.line and place.end_line <= each.end_line for each in kept):
            kept.append(place)
    return sorted(
        [*kept, *inserted.values()], key=lambda each: (each.line, each.operation == "INSERT", each.end_line)
    )


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
    shown = sorted(_ranges(places, spans, len(lines)))
    hunks: list[Hunk] = []
    waiting = list(places)
    at = 0
    while at < len(shown):
        first, last = shown[at]
        while at + 1 < len(shown) and shown[at + 1][0] <= last + 1:
            at += 1
            last = max(last, shown[at][1])
        at += 1
        hunk = Hunk(list(_lines(first, last, spans, lines)))
        old = [line.old for line in hunk.lines if line.old is not None]
        limit = old[-1] if old else 0
        if at == len(shown):
            hunk.places, waiting = waiting, []
        else:
            hunk.places = [place for place in waiting if place.line <= limit]
            waiting = [place for place in waiting if place.line > limit]
        hunks.append(hunk)
    return hunks or list(_alone(places))


def _ranges(places: Iterable[Place], spans: Sequence[_Span], count: int) -> Iterator[tuple[int, int]]:
    """First and last line of the result that are shown for each change and finding."""
    for span in spans:
        first, end = span.new
        yield max(first - _AROUND, 1), min(max(end - 1, first - 1) + _AROUND, count)
    for place in places:
        if not place.change and place.line:
            line = _in_result(place.line, spans)
            if line <= count:
                yield max(line - _AROUND, 1), min(line + _AROUND, count)


def _in_result(line: int, spans: Sequence[_Span]) -> int:
    """Where a line of the input is in the result."""
    shift = 0
    for span in spans:
        if span.old[0] > line:
            break
        if line < span.old[1]:
            return span.new[0]
        shift = span.new[1] - span.old[1]
    return line + shift


def _lines(first: int, last: int, spans: Sequence[_Span], lines: Sequence[str]) -> Iterator[Line]:
    shift, at = 0, first
    for span in spans:
        if span.new[0] > last + 1:
            break
        if span.new[0] < first:
            shift = span.old[1] - span.new[1]
            continue
        shift = span.old[0] - span.new[0]
        for number in range(at, span.new[0]):
            yield Line(number + shift, number, _cut(lines[number - 1]), _cut(lines[number - 1]))
        yield from _sides(span)
        at = span.new[1]
        shift = span.old[1] - span.new[1]
    for number in range(at, last + 1):
        yield Line(number + shift, number, _cut(lines[number - 1]), _cut(lines[number - 1]))


def _sides(span: _Span) -> Iterator[Line]:
    """The two sides of a change: lines that are the same stand beside each other."""
    before, after = span.before, span.after
    keys = [line.strip() for line in before], [line.strip() for line in after]
    matcher = SequenceMatcher(None, *keys, autojunk=False)
    for _, first, last, start, end in matcher.get_opcodes():
        for place in range(max(last - first, end - start)):
            has_old, has_new = first + place < last, start + place < end
            yield Line(
                span.old[0] + first + place if has_old else None,
                span.new[0] + start + place if has_new else None,
                _cut(before[first + place]) if has_old else None,
                _cut(after[start + place]) if has_new else None,
            )


def _alone(places: Sequence[Place]) -> Iterator[Hunk]:
    """A hunk for each place, without the lines around."""
    for place in places:
        if place.change:
            before, after = _text_lines(place.before), _text_lines(place.after)
            span = _Span((place.line, place.end_line + 1), (place.line, place.line), before, after)
            lines = [line._replace(new=None) for line in _sides(span)]
            yield Hunk(lines, [place])
        else:
            yield Hunk([], [place])


def _cut(line: str) -> str:
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def place_of(row: Any, change: bool) -> Place:
    """The place of a row of ``Run.places``."""
    return Place(change, *(row[name] for name in Place._fields[1:]))
