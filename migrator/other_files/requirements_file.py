"""Reader of ``requirements.txt`` and the like: pip's own format, of which no library keeps the places."""

from __future__ import annotations

import re
from collections.abc import Iterator

from migrator.files.lines import Lines
from migrator.other_files.index import Content, Requirement, Setting, Span
from migrator.other_files.requirement_text import requirement_at

_COMMENT = re.compile(r"(?:^|(?<=[ \t]))#.*")
_ABOUT = re.compile(rb"[ \t]+#")
_OPTION = re.compile(r"(--?[A-Za-z][\w-]*)(?:[ \t]*=[ \t]*|[ \t]+)?([^ \t]*)")
_EDITABLE = ("-e", "--editable")


def read(text: str, lines: Lines) -> Content:
    """The requirements, the options and the comments of a file."""
    comments: list[Span] = []
    requirements: list[Requirement] = []
    settings: list[Setting] = []
    del text
    for first, body in _logical(lines, comments):
        stripped = body.strip()
        if not stripped:
            continue
        start = first + len(body[: len(body) - len(body.lstrip())].encode("utf-8"))
        if stripped.startswith("-"):
            setting = _option(stripped, start)
            settings += [setting] if setting else []
            if setting is None or setting.name not in _EDITABLE or not setting.value_span:
                continue
            stripped, start = str(setting.value), setting.value_span[0]
        found = requirement_at(stripped.rstrip("\\ \t"), start, line=_line(lines, first))
        if found is not None:
            requirements.append(found)
    return Content(tuple(settings), (), tuple(comments), tuple(requirements))


def _logical(lines: Lines, comments: list[Span]) -> Iterator[tuple[int, str]]:
    """The lines without their comments, joined where one ends in ``\\``, each with its first byte."""
    joined, first = "", 0
    for number in range(1, len(lines.starts) + 1):
        start, end = lines.starts[number - 1], lines.content_end(number)
        line = lines.data[start:end].decode("utf-8")
        found = _COMMENT.search(line)
        if found:
            behind = start + len(line[: found.start()].encode("utf-8"))
            comments.append((behind, end))
            line = line[: found.start()]
        first = first if joined else start
        if line.endswith("\\") and number < len(lines.starts):
            # As long as the line and its end: places behind it are right.
            joined += line[:-1] + " " * (lines.starts[number] - end + 1)
            continue
        yield first, joined + line
        joined = ""


def _option(text: str, start: int) -> Setting | None:
    found = _OPTION.match(text)
    if found is None:
        return None
    name, value = found[1], found[2].strip("\"'")
    begin = start + len(text[: found.start(2)].encode("utf-8")) + (found[2][:1] in ("'", '"'))
    span = begin, begin + len(value.encode("utf-8"))
    return Setting("option", name, (start, start + len(name)), value, span)


def _line(lines: Lines, start: int) -> Span:
    """The line of a requirement, with the indented comments below it: there pip-compile says who wants it."""
    first = last = lines.line_of(start)
    while last < len(lines.starts) and _ABOUT.match(lines.data, lines.starts[last]):
        last += 1
    return lines.span(first, last)
