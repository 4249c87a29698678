"""Readers of JSON, TOML and INI. What reads them gives no places, so their few signs are read here.

JSON may have comments, and commas before closing brackets, as editors' settings have them; of TOML each value
has to be tomllib's.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple, Optional

from migrator.files.source import Lines
from migrator.language import N_, _
from migrator.other_files.entries import DEEPEST, Entry, Step, content_of
from migrator.other_files.index import Content, NotParsedError, Span

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# No two ways to fit one text: what begins as one of these is that, or is wrong.
_JSON = re.compile(
    rb"""[ \t\r\n]*(?:
    (?P<sign>[{}\[\],:])
    | (?P<string>"(?:[^"\\\r\n]|\\.)*")
    | (?P<plain>[\w.+-]+)
    | (?P<comment>//[^\r\n]*|/\*(?:[^*]|\*(?!/))*\*/)
    | \Z)""",
    re.VERBOSE,
)
_TOML = re.compile(
    rb"""[ \t\r\n]*(?:
    (?P<sign>[{}\[\],=])
    | (?P<string>\"{3}(?:[^"\\]|\\.|"(?!""))*\"{3,5} | '{3}(?:[^']|'(?!''))*'{3,5}
        | "(?:[^"\\\r\n]|\\.)*" | '[^'\r\n]*')
    | (?P<plain>\d{4}-\d\d-\d\d[ ]\d[\d:.+-]*|[\w+:.-]+)
    | (?P<comment>\#[^\r\n]*)
    | \Z)""",
    re.VERBOSE | re.DOTALL,
)
# What may be a key of several parts; a part in quotes counts as more, where it has dots.
_KEY = re.compile(rb"""[\w"'-]+(?:[ \t]*\.[ \t]*[\w"'-]+)*""")
_PART = re.compile(rb"[^. \t]+")
_MOST_PARTS = 200
_FIELD = re.compile(rb'(?m)#.*$|\b(\w+)[ \t]*:[ \t]*("?)([\w./:-]+)\2')


class _Token(NamedTuple):
    kind: str
    span: Span
    written: bytes


def read_json(lines: Lines) -> Content:
    """What a JSON text says; of several objects in a row (JSON lines) that of all. Raises NotParsedError."""
    reader = _Json(lines)
    for token in reader.tokens:
        reader.value(token, (), token.span, 0)
    return content_of(reader.entries, lines, reader.comments)


def read_toml(lines: Lines) -> Content:
    """What a TOML text says. Raises NotParsedError."""
    for found in _KEY.finditer(lines.data):
        if found.group().count(b".") > _MOST_PARTS:  # tomllib takes a time that grows with their square
            raise NotParsedError(lines.line_of(found.start()), _("a key has too many parts"))
    try:
        known = tomllib.loads(lines.data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        line = re.search(r"at line (\d+)", str(error))
        reason = str(error).partition(" (at")[0]
        raise NotParsedError(int(line[1]) if line else 0, reason) from None
    reader = _Toml(lines)
    table: tuple[Step, ...] = ()
    for token in reader.tokens:
        if token.written == b"[":
            table = reader.header()
        else:
            reader.member(token, table, 0)
    entries = filter(None, (_meant(known, entry) for entry in reader.entries))
    return content_of([*entries], lines, reader.comments)


class _Json:
    """Goes down through objects and lists."""

    pattern = _JSON
    nested = N_("lists and objects are nested too deeply")

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self.entries: list[Entry] = []
        self.comments: list[Span] = []
        self.tokens = self._tokens()

    def value(self, token: _Token, path: tuple[Step, ...], place: Span, depth: int) -> None:
        """A value, by its first token, whose key stands at ``place``, inside some objects and lists."""
        kind, span, written = token
        if kind == "sign" and written not in (b"{", b"["):
            raise self._wrong(token)
        if path:
            inner = () if kind == "sign" else self.meaning(token)
            self.entries.append(Entry(path, place, *inner))
        if kind == "sign":
            if depth > DEEPEST:
                raise NotParsedError(self._lines.line_of(span[0]), _(self.nested))
            end, number, needs_comma = (b"]" if written == b"[" else b"}"), 0, False
            while (item := self.following()).written != end:  # a comma may stand behind the last item, too
                if needs_comma != (item.written == b","):
                    raise self._wrong(item)
                if not needs_comma and end == b"]":
                    self.value(item, (*path, number), (item.span[0], item.span[0]), depth + 1)
                    number += 1
                elif not needs_comma:
                    self.member(item, path, depth + 1)
                needs_comma = not needs_comma

    def member(self, key: _Token, path: tuple[Step, ...], depth: int) -> None:
        """A key and its value."""
        if key.kind != "string":
            raise self._wrong(key)
        name, place, _verbatim = self.meaning(key)
        if (colon := self.following()).written != b":":
            raise self._wrong(colon)
        self.value(self.following(), (*path, name), place, depth)

    def meaning(self, token: _Token) -> tuple[str, Span, bool]:
        """What a single value means, its place without quotes, and whether just that stands there."""
        raw, (start, end) = token.written.decode("utf-8"), token.span
        if token.kind != "string":
            return raw, token.span, True
        verbatim = "\\" not in raw
        try:
            return raw[1:-1] if verbatim else json.loads(raw, strict=False), (start + 1, end - 1), verbatim
        except ValueError:
            raise self._wrong(token) from None

    def following(self) -> _Token:
        """The next sign or value."""
        token = next(self.tokens, None)
        if token is None:
            raise NotParsedError(self._lines.line_of(len(self._lines.data)), _("its end is missing"))
        return token

    def _tokens(self) -> Iterator[_Token]:
        data, place = self._lines.data, 0
        while place < len(data):
            match = self.pattern.match(data, place)
            if match is None:
                place += len(data[place:]) - len(data[place:].lstrip())
                raise self._wrong(_Token("sign", (place, place + 1), data[place : place + 1]))
            if match.lastgroup == "comment":
                self.comments.append(match.span("comment"))
            elif match.lastgroup:
                yield _Token(match.lastgroup, match.span(match.lastgroup), match[match.lastgroup])
            place = match.end()

    def _wrong(self, token: _Token) -> NotParsedError:
        written = token.written.decode("utf-8", "replace")[:20]
        line = self._lines.line_of(token.span[0])
        return NotParsedError(line, _("{written!r} is not expected here", written=written))


class _Toml(_Json):
    """The same of tables; a key has several parts, ``a."b.c"``. What tomllib has read holds nothing wrong."""

    pattern = _TOML
    nested = N_("lists and tables are nested too deeply")

    def __init__(self, lines: Lines) -> None:
        super().__init__(lines)
        self._last: dict[tuple[Step, ...], int] = {}  # the number of the last item of an array of tables

    def header(self) -> tuple[Step, ...]:
        """The path of ``[a.b]`` or ``[[a.b]]``, whose first bracket was read."""
        token = self.following()
        is_array = token.written == b"["
        names = [name for name, _place in self._parts(self.following() if is_array else token, b"]")]
        if is_array:
            self.following()
        path: tuple[Step, ...] = ()
        for number, name in enumerate(names, 1):
            path = (*path, name)
            if number == len(names) and is_array:
                self._last[path] = self._last.get(path, -1) + 1
            if path in self._last:
                path = (*path, self._last[path])
        return path

    def member(self, key: _Token, path: tuple[Step, ...], depth: int) -> None:
        parts = [*self._parts(key, b"=")]
        self.value(self.following(), (*path, *(name for name, _ in parts)), parts[-1][1], depth)

    def meaning(self, token: _Token) -> tuple[str, Span, bool]:
        raw, (start, end) = token.written.decode("utf-8"), token.span
        if token.kind != "string":
            return raw, token.span, True
        quotes = 3 if raw[:3] in ('"""', "'''") and len(raw) > 5 else 1
        inner = raw[quotes:-quotes]
        newline = re.match(r"\r?\n" if quotes == 3 else "", inner)  # the first one is no part of the text
        skipped = newline.end() if newline else 0
        verbatim = raw[0] == "'" or "\\" not in inner
        return inner[skipped:], (start + quotes + skipped, end - quotes), verbatim

    def _parts(self, token: _Token, end: bytes) -> Iterator[tuple[str, Span]]:
        """The parts of a key, by its first token, with their places, up to a sign behind it."""
        while token.written != end:
            start = token.span[0]
            if token.kind == "string":
                yield token.written[1:-1].decode("utf-8"), (start + 1, token.span[1] - 1)
            else:
                for part in _PART.finditer(token.written):
                    yield part[0].decode("utf-8"), (start + part.start(), start + part.end())
            token = self.following()


def _meant(known: Any, entry: Entry) -> Optional[Entry]:
    """An entry with the value that tomllib reads at its place; None where that is another one."""
    try:
        for step in entry.path:
            known = known[step]
    except (KeyError, IndexError, TypeError):  # the last of what is no table and no list
        return None
    if not isinstance(known, str):
        return entry
    same = known.replace("\r\n", "\n") == (entry.value or "").replace("\r\n", "\n")
    return entry if same else None if entry.verbatim else entry._replace(value=known)


_LINE = re.compile(rb"[^\r\n]*")
_SECTION = re.compile(rb"\[([^\]]+)\]")
_SIGN = re.compile(rb"[=:]")


def read_pbtxt(lines: Lines) -> Content:
    """What the fields of a protobuf's text say, by their own names and not by those of messages around."""
    fields = [field for field in _FIELD.finditer(lines.data) if field[1]]
    told = (Entry((field[1].decode(),), field.span(1), field[3].decode(), field.span(3)) for field in fields)
    return content_of([*told], lines, [])


def read_ini(lines: Lines) -> Content:
    """What an INI text says. Raises NotParsedError.

    A value of several lines is one setting, as it is written, and each line an item of a list.
    """
    entries: list[Entry] = []
    comments: list[Span] = []
    section: tuple[str, ...] = ()
    option: tuple[str, ...] = ()
    first, number = -1, 0  # of the lines of a value: the entry of the whole, and how many there are
    wholes: dict[int, int] = {}  # where the values of several lines end, by the numbers of their entries
    for start in lines.starts:
        match = _LINE.match(lines.data, start)
        line = match.group().rstrip() if match else b""
        body = line.lstrip()
        place, end = start + len(line) - len(body), start + len(line)
        if not body:
            continue
        if body.startswith((b"#", b";")):
            comments.append((place, end))
        elif place > start and option:
            wholes[first] = end
            entries.append(Entry((*option, number), (place, place), body.decode("utf-8"), (place, end)))
            number += 1
        elif found := _SECTION.match(body):
            section, option = (found[1].decode("utf-8").strip(),), ()
        elif body.startswith((b"{", b"=", b":")):
            raise NotParsedError(lines.line_of(start), _("neither a section nor an option"))
        else:
            entries.append(_option(section, body, place))
            option = tuple(map(str, entries[-1].path))
            first, number = len(entries) - 1, 0
    for whole, end in wholes.items():
        begin = (entries[whole].value_span or entries[whole + 1].span)[0]
        value = lines.data[begin:end].decode("utf-8")
        entries[whole] = entries[whole]._replace(value=value, value_span=(begin, end))
    return content_of(entries, lines, comments)


def _option(section: tuple[str, ...], body: bytes, place: int) -> Entry:
    """The option of a line that begins at a place."""
    sign = _SIGN.search(body)
    name = (body[: sign.start()] if sign else body).rstrip()
    path, span = (*section, name.decode("utf-8")), (place, place + len(name))
    value = body[sign.end() :].strip() if sign else b""
    if not value:
        return Entry(path, span)
    begin = place + len(body) - len(value)
    if len(value) > 1 and value[:1] == value[-1:] and value[:1] in (b'"', b"'"):
        begin, value = begin + 1, value[1:-1]  # who reads a file with quotes strips them
    return Entry(path, span, value.decode("utf-8"), (begin, begin + len(value)))
