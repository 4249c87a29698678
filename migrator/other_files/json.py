"""Reader of JSON, with comments and commas before closing brackets, as editors' settings have them.

What reads JSON gives no places, so its few signs are read here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Optional

from migrator.files.lines import Lines
from migrator.language import _
from migrator.other_files.entries import Entry, Step, content_of, too_deep
from migrator.other_files.index import Content, NotParsedError, Span

# No two ways to fit one text: what begins as one of these is that, or is wrong.
_TOKEN = re.compile(
    rb"""[ \t\r\n]*(?:
    (?P<sign>[{}\[\],:])
    | (?P<string>"(?:[^"\\\r\n]|\\.)*")
    | (?P<plain>[\w.+-]+)
    | (?P<comment>//[^\r\n]*|/\*(?:[^*]|\*(?!/))*\*/)
    | \Z)""",
    re.VERBOSE,
)


@dataclass
class _Holder:
    """An object or a list on the way down; ``key`` waits for its value."""

    path: tuple[Step, ...]
    is_list: bool
    number: int = 0
    key: Optional[tuple[str, Span]] = None
    needs_comma: bool = False
    has_colon: bool = False


def read(text: str, lines: Lines) -> Content:
    """What a JSON text says; of several objects in a row (JSON lines) that of all. Raises NotParsedError."""
    del text
    entries: list[Entry] = []
    comments: list[Span] = []
    stack: list[_Holder] = []
    for kind, span in _tokens(lines, comments):
        token = lines.data[slice(*span)]
        holder = stack[-1] if stack else None
        if token in (b"}", b"]"):
            if holder is None or holder.is_list != (token == b"]") or holder.key is not None:
                raise _wrong(lines, span)
            stack.pop()
        elif token == b",":
            if holder is None or not holder.needs_comma:
                raise _wrong(lines, span)
            holder.needs_comma = False
        elif token == b":":
            if holder is None or holder.key is None or holder.has_colon:
                raise _wrong(lines, span)
            holder.has_colon = True
        elif holder is not None and not holder.is_list and holder.key is None:
            if kind != "string" or holder.needs_comma:
                raise _wrong(lines, span)
            holder.key = _meaning(lines, span)[0], (span[0] + 1, span[1] - 1)
        else:
            if holder is not None and (holder.needs_comma or not (holder.is_list or holder.has_colon)):
                raise _wrong(lines, span)
            path, place = _next(holder, span)
            if kind == "sign":
                if too_deep(len(stack)):
                    raise NotParsedError(lines.line_of(span[0]), _("lists and objects are nested too deeply"))
                stack.append(_Holder(path, token == b"["))
                entry = Entry(path, place)
            elif kind == "string":
                value, inner, verbatim = _meaning(lines, span)
                entry = Entry(path, place, value, inner, verbatim)
            else:
                entry = Entry(path, place, token.decode("utf-8"), span)
            if path:
                entries.append(entry)
    if stack:
        raise NotParsedError(lines.line_of(len(lines.data)), _("its end is missing"))
    return content_of(entries, lines, comments)


def _tokens(lines: Lines, comments: list[Span]) -> Iterator[tuple[str, Span]]:
    """The kind and place of each sign and value."""
    data = lines.data
    place = 0
    while place < len(data):
        match = _TOKEN.match(data, place)
        if match is None:
            place += len(data[place:]) - len(data[place:].lstrip())
            raise _wrong(lines, (place, place + 1))
        kind = match.lastgroup
        if kind == "comment":
            comments.append(match.span(kind))
        elif kind:
            yield kind, match.span(kind)
        place = match.end()


def _next(holder: Optional[_Holder], span: Span) -> tuple[tuple[Step, ...], Span]:
    """The path of a value that begins, and the place of its key."""
    if holder is None:
        return (), span
    holder.needs_comma = True
    if holder.is_list:
        holder.number += 1
        return (*holder.path, holder.number - 1), (span[0], span[0])
    assert holder.key is not None
    (key, place), holder.key, holder.has_colon = holder.key, None, False
    return (*holder.path, key), place


def _meaning(lines: Lines, span: Span) -> tuple[str, Span, bool]:
    """What a string means, its place without quotes, and whether just that stands there."""
    raw = lines.data[slice(*span)].decode("utf-8")
    inner = span[0] + 1, span[1] - 1
    if "\\" not in raw:
        return raw[1:-1], inner, True
    try:
        return json.loads(raw, strict=False), inner, False
    except ValueError:
        raise _wrong(lines, span) from None


def _wrong(lines: Lines, span: Span) -> NotParsedError:
    written = lines.data[slice(*span)].decode("utf-8", "replace")[:20]
    return NotParsedError(lines.line_of(span[0]), _("{written!r} is not expected here", written=written))
