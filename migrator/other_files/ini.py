"""Reader of INI files, in configparser's syntax, which gives no places."""

from __future__ import annotations

import re
from dataclasses import replace

from migrator.files.lines import Lines
from migrator.language import _
from migrator.other_files.entries import Entry, content_of
from migrator.other_files.index import Content, NotParsedError, Span

_LINE = re.compile(rb"[^\r\n]*")
_SECTION = re.compile(rb"\[([^\]]+)\]")
_SIGN = re.compile(rb"[=:]")


def read(lines: Lines) -> Content:
    """What an INI text says. Raises NotParsedError.

    A value of several lines is told as a whole, as it is written, and by its lines as items of a list.
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
        entries[whole] = replace(entries[whole], value=value, value_span=(begin, end))
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
