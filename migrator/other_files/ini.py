"""Reader of INI files, in configparser's syntax, which gives no places."""

from __future__ import annotations

import re

from migrator.files.lines import Lines
from migrator.other_files.entries import Entry, content_of
from migrator.other_files.index import Content, NotParsedError, Span

_LINE = re.compile(rb"[^\r\n]*")
_SECTION = re.compile(rb"\[([^\]]+)\]")
_OPTION = re.compile(rb"([^\s=:\[{][^=:]*?)[ \t]*(?:[=:][ \t]*(.*))?\Z")


def read(text: str, lines: Lines) -> Content:
    """What an INI text says; lines of a text of several lines are items of a list. Raises NotParsedError."""
    del text
    entries: list[Entry] = []
    comments: list[Span] = []
    section: tuple[str, ...] = ()
    option: tuple[str, ...] = ()
    number = 0
    for start in lines.starts:
        match = _LINE.match(lines.data, start)
        line = match.group().rstrip() if match else b""
        text_of_line = line.lstrip()
        place = start + len(line) - len(text_of_line)
        if not text_of_line:
            continue
        if text_of_line.startswith((b"#", b";")):
            comments.append((place, start + len(line)))
        elif place > start and option:
            value = text_of_line.decode("utf-8")
            entries.append(Entry((*option, number), (place, place), value, (place, start + len(line))))
            number += 1
        elif found := _SECTION.match(text_of_line):
            section, option = (found[1].decode("utf-8").strip(),), ()
        elif found := _OPTION.match(text_of_line):
            name, value_bytes = found[1].decode("utf-8"), found[2]
            option, number = (*section, name), 0
            span = (place, place + len(found[1]))
            if value_bytes is None:
                entries.append(Entry(option, span))
                continue
            inner = _unquoted(value_bytes)
            begin = place + found.start(2) + (len(value_bytes) - len(inner)) // 2
            entries.append(
                Entry(option, span, inner.decode("utf-8"), (begin, begin + len(inner)))
                if inner
                else Entry(option, span)
            )
        else:
            raise NotParsedError(lines.line_of(start), "neither a section nor an option")
    return content_of(entries, lines, comments)


def _unquoted(value: bytes) -> bytes:
    """What stands in quotes: who reads a file with them strips them."""
    quoted = len(value) > 1 and value[:1] == value[-1:] and value[:1] in (b'"', b"'")
    return value[1:-1] if quoted else value
