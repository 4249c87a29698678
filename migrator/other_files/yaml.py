"""Reader of YAML, by the events of PyYAML's parser: they have places, and aliases are not expanded.

A value under an anchor is one place, and none for its aliases. Templates (Jinja, Helm) are mostly no YAML.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile
from typing import Any, Optional

import yaml

from migrator.files.source import Lines
from migrator.language import _
from migrator.other_files.entries import DEEPEST, Entry, Step, content_of
from migrator.other_files.index import Content, NotParsedError, Span

_COMMENT = re.compile(r"(?:^|(?<=[ \t\r\n\ufeff]))#[^\r\n]*")


def read(lines: Lines) -> Content:
    """What a YAML text says, of all its documents. Raises NotParsedError."""
    walk = _Walk(lines.data.decode("utf-8"))
    try:
        for event in walk.events:
            if isinstance(event, yaml.NodeEvent):
                walk.value(event, (), None, 0)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = str(error.problem or error.context)
        raise NotParsedError(mark.line + 1 if mark else 0, reason) from None
    except yaml.YAMLError as error:
        raise NotParsedError(0, " ".join(str(error).split())) from None
    return content_of(walk.entries, lines, _comments(walk))


class _Walk:
    """The way through the events. A part below a key that is no plain text has no path, and no entries."""

    def __init__(self, text: str) -> None:
        reader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        self.events: Iterator[Any] = iter(yaml.parse(text, Loader=reader))
        self.text = text
        self.ascii = text.isascii()
        self.entries: list[Entry] = []
        self.texts: list[tuple[int, int]] = []  # characters from and to which no comment begins
        self._known = (0, 0)  # a character's number, and its byte

    def value(self, event: Any, path: Optional[tuple[Step, ...]], place: Optional[Span], depth: int) -> None:
        """A value, whose key stands at ``place``, inside some lists and mappings, and all that is in it."""
        if isinstance(event, yaml.ScalarEvent):
            self._note(event)
            if path and place:
                span, verbatim = self._inner(event)
                value = event.value if event.value or event.style else None
                self.entries.append(Entry(path, place, value, span, verbatim))
            return
        if path and place:
            self.entries.append(Entry(path, place))
        if isinstance(event, yaml.CollectionStartEvent):
            if depth > DEEPEST:
                mark: Any = event.start_mark  # the events of a parser have one
                raise NotParsedError(mark.line + 1, _("lists and mappings are nested too deeply"))
            inside = takewhile(lambda each: not isinstance(each, yaml.CollectionEndEvent), self.events)
            if isinstance(event, yaml.SequenceStartEvent):
                for number, item in enumerate(inside):
                    start = 0 if isinstance(item, yaml.AliasEvent) else self._bytes(item.start_mark.index)
                    own = None if path is None else (*path, number)
                    self.value(item, own, (start, start), depth + 1)
            else:
                for key in inside:
                    self._member(key, path, depth + 1)

    def _member(self, key: Any, path: Optional[tuple[Step, ...]], depth: int) -> None:
        """A key of a mapping, with its value."""
        own, place = None, None
        if isinstance(key, yaml.ScalarEvent):
            self._note(key)
            if path is not None:
                own, (place, _verbatim) = (*path, key.value), self._inner(key)
        else:
            self.value(key, None, None, depth)
        self.value(next(self.events), own, place, depth)

    def _note(self, event: Any) -> None:
        """Remember a text in which a ``#`` begins no comment."""
        start, end = event.start_mark, event.end_mark
        if event.style or end.line > start.line:
            self.texts.append((start.index, end.index))

    def _inner(self, event: Any) -> tuple[Span, bool]:
        """The place of a text without quotes, anchor and tag, and whether just that stands there."""
        start, end, value = event.start_mark.index, event.end_mark.index, event.value
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
