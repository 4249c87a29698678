"""Comments that suppress findings: noqa, and npumigrate's own ``ignore[…]`` and ``skip-file``."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Optional

from migrator.core.changes import first_line
from migrator.files.source import LINE_END, Lines, lines_of, whole_lines
from migrator.findings.finding import Edit, Finding, Fix, begins
from migrator.language import _
from migrator.light import Frozen

if TYPE_CHECKING:
    from migrator.files.document import Document
    from migrator.other_files.index import TextIndex

UNUSED = "NPU990"

_COMMENT = re.compile(r"#[^\n]*")  # or the end of a string that looks like one
_MAY_HOLD = re.compile(r"noqa|npumigrate\s*:", re.IGNORECASE)
# Most files hold none: these are compiled for the first one that does.
_SKIP_FILE = r"#\s*npumigrate\s*:\s*skip-file\b"
_CODES = r"[A-Za-z]+[0-9]+(?:[,\s]+[A-Za-z]+[0-9]+)*"
_NOQA = rf"(?i)#\s*noqa(?![\w-])(?P<list>\s*:)?(?:(?<=:)\s*(?P<codes>{_CODES}))?"
_IGNORE = r"#\s*npumigrate\s*:\s*ignore(?![\w-])(?P<list>\s*\[(?P<codes>[^\]#]*)\])?"
# What can hold a "#" or a line end that is none: comments, texts, and joined lines. The tokenize module
# would take longer than all the rest.
_TOKEN = r"""(?xs)\#[^\r\n]*
    | \"\"\"[^\\"]*(?:(?:\\.|"(?!""))[^\\"]*)*\"\"\"
    | \'\'\'[^\\']*(?:(?:\\.|'(?!''))[^\\']*)*\'\'\'
    | "[^\\"\r\n]*(?:\\(?:\r\n|.)[^\\"\r\n]*)*"
    | '[^\\'\r\n]*(?:\\(?:\r\n|.)[^\\'\r\n]*)*'
    | \\(?:\r\n|\r|\n)"""
_CODE = r"(?<![A-Za-z])[A-Za-z]+[0-9]+"


@dataclass(eq=False, repr=False)
class _Comment:
    """A suppressing comment; ``codes`` is None where it holds for every rule."""

    row: int
    start: int  # columns of the directive inside its line, from 0
    end: int
    codes: Optional[tuple[str, ...]]
    noqa: bool
    used: set[str] = field(default_factory=set)


class Suppressions(Frozen):
    """The suppressing comments of one file.

    ``ends`` has, for rows inside of a multi-line text or before a backslash, the
    row at whose end a comment can stand.
    """

    comments: tuple[_Comment, ...] = ()
    ends: dict[int, int] = field(default_factory=dict)
    skip_file: bool = False
    lines: tuple[str, ...] = ()

    def apply(self, found: Iterable[Finding]) -> list[Finding]:
        """The findings that no comment suppresses, with their ``noqa_line``.

        A comment counts at the end of the finding's first line or of its last one.
        """
        by_row: dict[int, list[_Comment]] = {}
        for comment in self.comments:
            by_row.setdefault(comment.row, []).append(comment)
        kept = []
        for item in found:
            first, last = (self.ends.get(line, line) for line in (item.line, item.end_line))
            comments = [comment for row in {first, last} for comment in by_row.get(row, ())]
            hits = [(comment, code) for comment in comments for code in _matching(comment, item.code)]
            for comment, code in hits:
                comment.used.add(code)
            if not hits:
                kept.append(item._replace(noqa_line=first))
        return kept

    def unused(self, enabled: Collection[str], lines: Lines) -> Iterator[Finding]:
        """A finding for each comment with codes that suppressed nothing; call it after ``apply``.

        A ``noqa`` may hold codes of other tools, and a code that is not enabled
        in this run may serve another one: neither is reported.
        """
        for comment in self.comments:
            if comment.codes is None:
                continue
            idle = [code for code in comment.codes if code not in comment.used]
            idle = [code for code in idle if any(begins(code.upper(), known) for known in enabled)]
            if not idle:
                continue
            kept = [code for code in comment.codes if code not in idle]
            what = ", ".join(idle)
            message = _("unused suppression: {what} has no finding here", what=what)
            fix = Fix((self._without(comment, kept, lines),), "safe", message=_("Remove {what}", what=what))
            start, end = (lines.offset(comment.row, column + 1) for column in (comment.start, comment.end))
            place = lines.ends((start, end))
            yield Finding(UNUSED, message, *place, advice=_("Remove it"), fix=fix, span=(start, end))

    def _without(self, comment: _Comment, kept: list[str], lines: Lines) -> Edit:
        line = self.lines[comment.row - 1]
        start, end, text = comment.start, comment.end, ""
        rest = line[end:].strip()
        if kept:
            codes = ", ".join(kept)
            text = f"# noqa: {codes}" if comment.noqa else f"# npumigrate: ignore[{codes}]"
        elif not rest:
            start, end = len(line[:start].rstrip()), len(line)
        else:
            text = "" if rest.startswith("#") else "# "  # what follows is a remark of its own
            end = len(line) - len(line[end:].lstrip())
        return Edit(lines.offset(comment.row, start + 1), lines.offset(comment.row, end + 1), text)


def _matching(comment: _Comment, code: str) -> list[str]:
    """The codes of a comment that suppress a rule's code; ``*`` for one that holds for all."""
    if comment.codes is None:
        return ["*"]
    return [wanted for wanted in comment.codes if begins(wanted.upper(), code)]


def read(text: str, line_ends: bool = False) -> Suppressions:
    """The suppressing comments of a Python text; it need not parse.

    With ``line_ends`` the rows at which comments can stand are known even where there is none yet.
    """
    if not line_ends and not any(map(_MAY_HOLD.search, _COMMENT.findall(text))):
        return Suppressions()
    comments: list[_Comment] = []
    ends: dict[int, int] = {}
    skip = False
    lines = lines_of(text)
    breaks = [match.end() for match in LINE_END.finditer(text)]
    for match in re.finditer(_TOKEN, text):
        token = match.group()
        if token[0] == "#":
            if _MAY_HOLD.search(token):
                row = bisect_right(breaks, match.start()) + 1
                skip = skip or bool(re.match(_SKIP_FILE, token))
                start = match.start() - (breaks[row - 2] if row > 1 else 0)
                comments += _comments(token, row, start)
        elif "\n" in token or "\r" in token:
            row = bisect_right(breaks, match.start()) + 1
            last = bisect_right(breaks, match.end()) + 1
            ends.update((inner, last) for inner in range(row, last))
    for row in sorted(ends, reverse=True):  # a chain of rows leads to its last one
        ends[row] = ends.get(ends[row], ends[row])
    return Suppressions(tuple(comments), ends, skip, tuple(lines))


def of_document(item: Document) -> Suppressions:
    """The suppressing comments of a document; of a text that cannot be read there are none.

    In a text other than Python one that stands alone on its line counts for the next line, as not all
    languages have comments behind something, and a long command may be broken by none.
    """
    if not item.type:
        return read(item.text)
    from migrator.other_files.index import readable

    index = readable(item.name, item.type, item.text) if _MAY_HOLD.search(item.text) else None
    if index is None:
        return Suppressions()
    lines, rows = lines_of(item.text), Lines(item.text)
    comments: list[_Comment] = []
    ends: dict[int, int] = {}
    skip = False
    for span in index.content.comments:
        comment = index.text_of(span)
        if _MAY_HOLD.search(comment):
            row, column = rows.place(span[0])
            words = comment.lstrip("#;/ ")
            as_python = "#".ljust(len(comment) - len(words)) + words  # each letter at its place
            skip = skip or bool(re.match(_SKIP_FILE, as_python))
            comments += _comments(as_python, row, column - 1)
            if not lines[row - 1][: column - 1].strip():
                ends[row + 1] = row
    return Suppressions(tuple(comments), ends, skip, tuple(lines))


def _comments(comment: str, row: int, column: int) -> Iterator[_Comment]:
    for noqa, pattern in ((True, _NOQA), (False, _IGNORE)):
        for match in re.finditer(pattern, comment):
            codes = tuple(re.findall(_CODE, match["codes"] or "")) if match["list"] else None
            if noqa and codes == ():
                continue  # a colon and then words: it names no rule, and is not meant for all
            yield _Comment(row, column + match.start(), column + match.end(), codes, noqa)


def with_comments(item: Document, found: Iterable[Finding]) -> tuple[str, int]:
    """The text with a ``# noqa`` for each finding, and how many rows got one or a longer one.

    In a text other than Python it stands behind a line, or above it where it would belong to something else
    there. Where neither can be, as in JSON, there is none.
    """
    wanted: dict[int, set[str]] = {}  # by the rows of the text
    for finding in found:
        if finding.noqa_line is not None and finding.code != UNUSED:
            row = first_line(item, finding) + finding.noqa_line - 1
            wanted.setdefault(row, set()).add(finding.code)
    lines = whole_lines(item.text)
    rows = _comment_text(item, lines, wanted) if item.type else _comment_python(item.text, lines, wanted)
    return ("".join(lines) if rows else item.text), rows


def _comment_python(text: str, lines: list[str], wanted: Mapping[int, set[str]]) -> int:
    found = read(text, line_ends=True).comments
    there = {each.row: each for each in found if each.noqa and each.codes is not None}
    for row, codes in wanted.items():
        line = lines[row - 1]
        body = line.rstrip("\r\n")
        comment = there.get(row)
        if comment is not None:
            own = comment.codes or ()
            every = [*own, *sorted(codes.difference(own))]
            new = f"{body[: comment.start]}# noqa: {', '.join(every)}{body[comment.end :]}"
        else:
            new = f"{body.rstrip()}  # noqa: {', '.join(sorted(codes))}"
        lines[row - 1] = new + line[len(body) :]
    return len(wanted)


_WITH_CODES = r"(#\s*noqa\s*:\s*)([A-Z]+[0-9]+(?:[,\s]+[A-Z]+[0-9]+)*)"
# Of these a comment behind something is a part of it, for some that read them.
_ALONE = ("dockerfile", "env", "makefile")


def _comment_text(item: Document, lines: list[str], wanted: Mapping[int, set[str]]) -> int:
    from migrator.other_files.index import readable

    index, rows = readable(item.name, item.type, item.text), 0
    for row in sorted(wanted, reverse=True) if index else ():  # a line above moves only what is done
        for line, comment in _suppressed(lines[row - 1], wanted[row], item.type in _ALONE):
            changed = [*lines[: row - 1], line, *lines[row:]]
            new = readable(item.name, item.type, "".join(changed))
            there = [new.text_of(span) for span in new.content.comments] if new else []
            if index and new and _says(new) == _says(index) and any(comment in each for each in there):
                lines[:], rows = changed, rows + 1
                break
    return rows


def _suppressed(line: str, codes: set[str], alone: bool) -> Iterator[tuple[str, str]]:
    """A line with a comment, in the ways that there are; and the comment."""
    body = line.rstrip("\r\n")
    end = line[len(body) :]
    there = re.search(_WITH_CODES, body)
    if there:
        every = [*re.findall(r"(?<![A-Z])[A-Z]+[0-9]+", there[2]), *sorted(codes)]
        comment = there[1] + ", ".join(dict.fromkeys(every))
        yield f"{body[: there.start()]}{comment}{body[there.end() :]}{end}", comment
        return
    comment = f"# noqa: {', '.join(sorted(codes))}"
    indent = body[: len(body) - len(body.lstrip())]
    if not alone:
        yield f"{body.rstrip()}  {comment}{end}", comment
    yield f"{indent}{comment}{end or chr(10)}{line}", comment


def _says(index: TextIndex) -> list[object]:
    """What a text says beside its comments."""
    content = index.content
    words = [[word.text for word in command.words] for command in content.commands]
    packages = [(item.name, item.specifier, item.marker, item.locked) for item in content.requirements]
    return [[(item.kind, item.name, item.value) for item in content.settings], words, packages]
