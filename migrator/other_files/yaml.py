"""Reader of YAML, by the events of PyYAML's parser: they have places, and aliases are not expanded.

A value under an anchor is one place, and none for its aliases. Templates (Jinja, Helm) are mostly no YAML.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Optional

import yaml

from migrator.files.lines import Lines
from migrator.language import _
from migrator.other_files.entries import Entry, Step, content_of, too_deep
from migrator.other_files.index import Content, NotParsedError, Span

_COMMENT = re.compile(r"(?:^|(?<=[ \t\r\n\ufeff]))#[^\r\n]*")


def read(text: str, lines: Lines) -> Content:
    """What a YAML text says, of all its documents. Raises NotParsedError."""
    reader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    walk = _Walk(text)
    try:
        for event in yaml.parse(text, Loader=reader):
            walk.take(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = str(error.problem or error.context)
        raise NotParsedError(mark.line + 1 if mark else 0, reason) from None
    except yaml.YAMLError as error:
        raise NotParsedError(0, " ".join(str(error).split())) from None
    return content_of(walk.entries, lines, _comments(walk))


class _Holder:
    """A mapping or a list on the way down; ``key`` is the entry that waits for its value."""

    def __init__(self, is_list: bool, path: Optional[tuple[Step, ...]]) -> None:
        self.is_list = is_list
        self.path = path
        self.number = 0
        self.key: Optional[tuple[Step, Span]] = None
        self.key_is_next = not is_list


class _Walk:
    """The way through the events. A part below a key that is no plain text has no path, and no entries."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.ascii = text.isascii()
        self.entries: list[Entry] = []
        self.texts: list[tuple[int, int]] = []  # characters from and to which no comment begins
        self.stack: list[_Holder] = []
        self._known = (0, 0)  # a character's number, and its byte

    def take(self, event: Any) -> None:
        """The next event."""
        start, end = event.start_mark, event.end_mark
        if isinstance(event, yaml.ScalarEvent):
            if event.style or end.line > start.line:
                self.texts.append((start.index, end.index))
            self._value(event)
        elif isinstance(event, yaml.AliasEvent):
            self._value(None)
        elif isinstance(event, yaml.CollectionStartEvent):
            if too_deep(len(self.stack)):
                raise NotParsedError(start.line + 1, _("lists and mappings are nested too deeply"))
            path, place = self._next(event)
            if path and place:
                self.entries.append(Entry(path, place))
            self.stack.append(_Holder(isinstance(event, yaml.SequenceStartEvent), path))
        elif isinstance(event, yaml.CollectionEndEvent):
            self.stack.pop()

    def _value(self, event: Any) -> None:
        holder = self.stack[-1] if self.stack else None
        if holder is not None and holder.key_is_next:
            holder.key_is_next = False
            if event is not None:
                holder.key = event.value, self._inner(event, event.value)[0]
            return
        path, place = self._next(event)
        if not path or place is None:
            return
        if event is None:
            self.entries.append(Entry(path, place))
            return
        span, verbatim = self._inner(event, event.value)
        value = event.value if event.value or event.style else None
        self.entries.append(Entry(path, place, value, span, verbatim))

    def _next(self, event: Any) -> tuple[Optional[tuple[Step, ...]], Optional[Span]]:
        """The path of the next value, and the place of its key; no path below a key that is no text."""
        if not self.stack:
            return (), None
        holder = self.stack[-1]
        if holder.is_list:
            holder.number += 1
            if holder.path is None:
                return None, None
            start = self._bytes(event.start_mark.index) if event is not None else 0
            return (*holder.path, holder.number - 1), (start, start)
        if holder.key_is_next:  # a mapping or a list as a key
            holder.key_is_next = False
            return None, None
        key, holder.key, holder.key_is_next = holder.key, None, True
        if key is None or holder.path is None:
            return None, None
        return (*holder.path, key[0]), key[1]

    def _inner(self, event: Any, value: str) -> tuple[Span, bool]:
        """The place of a text without quotes, anchor and tag, and whether just that stands there."""
        start, end = event.start_mark.index, event.end_mark.index
        raw = self.text[start:end]
        if event.style in ("'", '"'):
            inner = raw[raw.index(event.style) + 1 : -1]
            place = end - 1 - len(inner), end - 1
        elif event.style:
            head = re.match(r"[^\n]*\n?", raw)
            inner = raw[head.end() if head else 0 :]
            place = end - len(inner), end
        else:
            inner = raw[-len(value) :] if value and raw.endswith(value) else raw
            place = end - len(inner), end
        return (self._bytes(place[0]), self._bytes(place[1])), inner == value

    def _bytes(self, index: int) -> int:
        """The byte at which a character begins; they are asked for almost in order."""
        if self.ascii:
            return index
        known, byte = self._known
        if index < known:
            byte -= len(self.text[index:known].encode("utf-8"))
        else:
            byte += len(self.text[known:index].encode("utf-8"))
        self._known = index, byte
        return byte

    def span(self, start: int, end: int) -> Span:
        """The bytes of some characters."""
        return self._bytes(start), self._bytes(end)


def _comments(walk: _Walk) -> Iterator[Span]:
    if "#" not in walk.text:
        return
    texts = iter([*walk.texts, (len(walk.text), len(walk.text))])
    start, end = next(texts)
    for match in _COMMENT.finditer(walk.text):
        while end <= match.start() and start < len(walk.text):
            start, end = next(texts)
        # A comment may stand on the line on which a text of several lines is announced.
        inside = start < match.start() and "\n" in walk.text[start : match.start()]
        quoted = start < match.start() and walk.text[start] in "'\""
        if not (inside or quoted):
            yield walk.span(match.start(), match.end())
