"""Reader of JSON, with comments and commas before closing brackets, as editors' settings have them.

What reads JSON gives no places, so its few signs are read here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

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


class _Token(NamedTuple):
    kind: str
    span: Span
    written: bytes


def read(lines: Lines) -> Content:
    """What a JSON text says; of several objects in a row (JSON lines) that of all. Raises NotParsedError."""
    reader = _Reader(lines)
    for token in reader.tokens:
        reader.take(token, (), token.span, 0)
    return content_of(reader.entries, lines, reader.comments)


class _Reader:
    """Goes down through objects and lists."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self.entries: list[Entry] = []
        self.comments: list[Span] = []
        self.tokens = self._tokens()

    def take(self, token: _Token, path: tuple[Step, ...], place: Span, depth: int) -> None:
        """A value, by its first token, whose key stands at ``place``, inside some objects and lists."""
        kind, span, written = token
        entry = Entry(path, place)
        if kind == "string":
            entry = Entry(path, place, *self._meaning(token))
        elif kind == "plain":
            entry = Entry(path, place, written.decode("utf-8"), span)
        elif written not in (b"{", b"["):
            raise self._wrong(token)
        if path:
            self.entries.append(entry)
        if kind == "sign" and too_deep(depth):
            line = self._lines.line_of(span[0])
            raise NotParsedError(line, _("lists and objects are nested too deeply"))
        if written == b"[":
            for number, item in enumerate(self._items(b"]")):
                self.take(item, (*path, number), (item.span[0], item.span[0]), depth + 1)
        elif written == b"{":
            for key in self._items(b"}"):
                if key.kind != "string":
                    raise self._wrong(key)
                name, inner, _verbatim = self._meaning(key)
                if (colon := self._next()).written != b":":
                    raise self._wrong(colon)
                self.take(self._next(), (*path, name), inner, depth + 1)

    def _items(self, end: bytes) -> Iterator[_Token]:
        """The first token of each item of an object or a list; a comma may stand behind the last, too."""
        needs_comma = False
        while (token := self._next()).written != end:
            if needs_comma != (token.written == b","):
                raise self._wrong(token)
            if not needs_comma:
                yield token
            needs_comma = not needs_comma

    def _next(self) -> _Token:
        token = next(self.tokens, None)
        if token is None:
            raise NotParsedError(self._lines.line_of(len(self._lines.data)), _("its end is missing"))
        return token

    def _tokens(self) -> Iterator[_Token]:
        """Each sign and value."""
        data = self._lines.data
        place = 0
        while place < len(data):
            match = _TOKEN.match(data, place)
            if match is None:
                place += len(data[place:]) - len(data[place:].lstrip())
                raise self._wrong(_Token("sign", (place, place + 1), data[place : place + 1]))
            if match.lastgroup == "comment":
                self.comments.append(match.span("comment"))
            elif match.lastgroup:
                yield _Token(match.lastgroup, match.span(match.lastgroup), match[match.lastgroup])
            place = match.end()

    def _meaning(self, token: _Token) -> tuple[str, Span, bool]:
        """What a string means, its place without quotes, and whether just that stands there."""
        raw, inner = token.written.decode("utf-8"), (token.span[0] + 1, token.span[1] - 1)
        if "\\" not in raw:
            return raw[1:-1], inner, True
        try:
            return json.loads(raw, strict=False), inner, False
        except ValueError:
            raise self._wrong(token) from None

    def _wrong(self, token: _Token) -> NotParsedError:
        written = token.written.decode("utf-8", "replace")[:20]
        line = self._lines.line_of(token.span[0])
        return NotParsedError(line, _("{written!r} is not expected here", written=written))
