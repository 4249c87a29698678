"""Commands of a shell in a value of a configuration, which may be indented or folded there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

from migrator.other_files import shell
from migrator.other_files.index import Content, Span, Word


def read_written(data: bytes, value: str, span: Span) -> Content:
    """What a shell reads in a value that is written at a place of a file, with places in the file.

    Its lines may be indented or folded there. What is written with escapes is not looked at.
    """
    text = value.encode("utf-8")
    places = _aligned(text, data[slice(*span)])
    return Content() if places is None else read_at(data, text, [span[0] + place for place in places])


def read_at(data: bytes, text: bytes, places: Sequence[int], depth: int = 0) -> Content:
    """What a shell reads in a text, with the place of each byte in a file, and of what is behind the last."""
    before = b"x " if text.startswith(b"-") else b""  # the options of a command that is not written here
    own = before + text

    def moved(span: Span) -> Span:
        first, last = (max(0, place - len(before)) for place in span)
        if first == last:
            return places[first], places[first]
        return places[first], places[last - 1] + 1

    def same(span: Optional[Span]) -> Optional[Span]:
        """The place of a part, where the same stands there."""
        if span is None:
            return None
        new = moved(span)
        return new if data[slice(*new)] == own[slice(*span)] else None

    found = shell.read_shell(own, depth=depth, in_value=True)
    settings = [
        item._replace(name_span=name_span, value_span=same(item.value_span))
        for item in found.settings
        if (name_span := same(item.name_span))
    ]
    commands = []
    for each in found.commands:
        words = tuple(Word(word.text, moved(word.span)) for word in each.words)
        commands.append(each._replace(words=words, span=moved(each.span)))
    comments = tuple(place for span in found.comments if (place := same(span)))
    return Content(tuple(settings), tuple(commands), comments)


def _aligned(text: bytes, raw: bytes) -> Optional[list[int]]:
    """The place of each byte of a text in what is written; None where it is written with escapes."""
    places = []
    place = 0
    blank = b" \t\r\n"
    for byte in text:
        while place < len(raw) and raw[place] != byte and raw[place] in blank and byte not in blank:
            place += 1
        if place < len(raw) and (raw[place] == byte or (raw[place] in blank and byte in blank)):
            places.append(place)
            place += 1
        elif byte in blank:
            places.append(min(place, len(raw)))
        else:
            return None
    return [*places, len(raw)]
