"""Reader of TOML. tomllib gives no places, so its signs are read here, and each value has to be tomllib's."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Optional

from migrator.files.lines import Lines
from migrator.language import _
from migrator.other_files.entries import Entry, Step, content_of, too_deep
from migrator.other_files.index import Content, NotParsedError, Span

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_TOKEN = re.compile(
    rb"""[ \t]+
    | (?P<comment>\#[^\r\n]*)
    | (?P<end>\r?\n)
    | (?P<string>\"{3}(?:[^"\\]|\\.|"(?!""))*\"{3,5} | '{3}(?:[^']|'(?!''))*'{3,5}
        | "(?:[^"\\\r\n]|\\.)*" | '[^'\r\n]*')
    | (?P<plain>[\w+:-]+)
    | (?P<sign>[{}\[\],=.])""",
    re.VERBOSE | re.DOTALL,
)
# What may be a key of several parts; a part in quotes counts as more, where it has dots.
_KEY = re.compile(rb"""[\w"'-]+(?:[ \t]*\.[ \t]*[\w"'-]+)*""")
_MOST_PARTS = 200


@dataclass
class _Holder:
    """A table or a list on the way down, and how many items of the list there were."""

    path: tuple[Step, ...]
    is_list: bool
    number: int = 0


def read(lines: Lines) -> Content:
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
    comments: list[Span] = []
    entries = [entry for entry in _entries(lines, comments) if _is_known(known, entry)]
    return content_of(entries, lines, comments)


def _entries(lines: Lines, comments: list[Span]) -> Iterator[Entry]:
    tables: dict[tuple[Step, ...], int] = {}  # how many items an array of tables has
    table: tuple[Step, ...] = ()
    stack: list[_Holder] = []
    keys: list[tuple[str, Span]] = []
    in_value = False
    tokens = [*_tokens(lines, comments)]
    place = 0
    while place < len(tokens):
        kind, span = tokens[place]
        token = lines.data[slice(*span)]
        place += 1
        holder = stack[-1] if stack else None
        if kind == "end":
            if holder is None:
                keys, in_value = [], False
        elif holder is None and not in_value and not keys and token == b"[":
            table, place = _header(lines, tokens, place, tables)
        elif token in (b"}", b"]", b","):
            if token != b"," and stack:
                stack.pop()
            keys, in_value = [], False
        elif token == b"=":
            in_value = True
        elif token == b"." and not in_value:
            continue
        elif in_value or (holder is not None and holder.is_list):
            path = holder.path if holder else table
            if holder is not None and holder.is_list:
                path, key = (*path, holder.number), (span[0], span[0])
                holder.number += 1
            else:
                path = (*path, *(name for name, _ in keys))
                key = keys[-1][1] if keys else span
            if token in (b"{", b"["):
                if too_deep(len(stack)):
                    raise NotParsedError(lines.line_of(span[0]), _("lists and tables are nested too deeply"))
                stack.append(_Holder(path, token == b"["))
                keys, in_value = [], False
                yield Entry(path, key)
                continue
            while kind == "plain" and place < len(tokens) and tokens[place][1][0] == span[1]:
                if lines.data[slice(*tokens[place][1])] in (b",", b"]", b"}", b"\n", b"\r\n"):
                    break
                span = span[0], tokens[place][1][1]  # a float: 1.5
                place += 1
            yield _value(lines, path, key, kind, span)
        else:
            name = _key(lines, kind, span)
            quote = int(kind == "string")
            keys.append((name, (span[0] + quote, span[1] - quote)))


def _header(
    lines: Lines, tokens: list[tuple[str, Span]], place: int, tables: dict[tuple[Step, ...], int]
) -> tuple[tuple[Step, ...], int]:
    """The path of ``[a.b]`` or ``[[a.b]]``, and the place of the next token."""
    is_array = lines.data[slice(*tokens[place][1])] == b"["
    path: tuple[Step, ...] = ()
    names = []
    while place < len(tokens) and tokens[place][0] != "end":
        kind, span = tokens[place]
        if kind in ("plain", "string"):
            names.append(_key(lines, kind, span))
        place += 1
    for number, name in enumerate(names):
        path = (*path, name)
        if number == len(names) - 1 and is_array:
            tables[path] = tables.get(path, -1) + 1
        if path in tables:
            path = (*path, tables[path])
    return path, place


def _tokens(lines: Lines, comments: list[Span]) -> Iterator[tuple[str, Span]]:
    data = lines.data
    place = 0
    while place < len(data):
        match = _TOKEN.match(data, place)
        if match is None:
            raise NotParsedError(lines.line_of(place), _("a sign that is not expected"))
        if match.lastgroup == "comment":
            comments.append(match.span())
        elif match.lastgroup:
            yield match.lastgroup, match.span()
        place = match.end()


def _key(lines: Lines, kind: str, span: Span) -> str:
    raw = lines.data[slice(*span)].decode("utf-8")
    return raw[1:-1] if kind == "string" else raw


def _value(lines: Lines, path: tuple[Step, ...], key: Span, kind: str, span: Span) -> Entry:
    raw = lines.data[slice(*span)].decode("utf-8")
    if kind != "string":
        return Entry(path, key, raw, span)
    quotes = 3 if raw[:3] in ('"""', "'''") and len(raw) > 5 else 1
    inner = raw[quotes:-quotes]
    skipped = len(inner) - len(inner.lstrip("\r\n")[-len(inner) :]) if quotes == 3 else 0
    skipped = min(skipped, 2 if inner.startswith("\r\n") else 1)
    verbatim = raw[0] == "'" or "\\" not in inner
    begin = span[0] + quotes + skipped
    return Entry(path, key, inner[skipped:], (begin, span[1] - quotes), verbatim)


def _is_known(known: Any, entry: Entry) -> bool:
    """Whether a value is what tomllib reads at its place."""
    found: Optional[Any] = known
    try:
        for step in entry.path:
            found = found[step]  # type: ignore[index]  # what is no holder raises TypeError
    except (KeyError, IndexError, TypeError):
        return False
    if not isinstance(found, str) or not entry.verbatim:
        return True
    return found.replace("\r\n", "\n") == (entry.value or "").replace("\r\n", "\n")
