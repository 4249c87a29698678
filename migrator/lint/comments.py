"""Suppressing comments that are added to files that are no Python: only where they change nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from migrator.files.document import Document
from migrator.files.source import whole_lines
from migrator.findings.finding import Finding
from migrator.lint.suppressions import wanted_codes
from migrator.other_files.index import TextIndex, readable

_NOQA = re.compile(r"(#\s*noqa\s*:\s*)([A-Z]+[0-9]+(?:[,\s]+[A-Z]+[0-9]+)*)")
# Of these a comment behind something is a part of it, for some that read them.
_ALONE = ("dockerfile", "env", "makefile")


def added_to_text(item: Document, found: Iterable[Finding]) -> tuple[str, int]:
    """The text with a ``# noqa`` for each finding, and how many rows got one or a longer one.

    It stands behind a line, or above it where it would belong to something else there. Where neither can be,
    as in JSON, there is none.
    """
    wanted = wanted_codes(found)
    index = readable(item.name, item.type, item.text)
    lines, rows = whole_lines(item.text), 0
    for row in sorted(wanted, reverse=True):  # a line above moves only what is done
        if index is None:
            break
        for line, comment in _suppressed(lines[row - 1], wanted[row], item.type in _ALONE):
            changed = [*lines[: row - 1], line, *lines[row:]]
            new = readable(item.name, item.type, "".join(changed))
            if new is not None and _says(new) == _says(index) and _has(new, comment):
                lines, rows = changed, rows + 1
                break
    return "".join(lines), rows


def _suppressed(line: str, codes: set[str], alone: bool) -> Iterator[tuple[str, str]]:
    """A line with a comment, in the ways that there are; and the comment."""
    body = line.rstrip("\r\n")
    end = line[len(body) :]
    there = _NOQA.search(body)
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


def _has(index: TextIndex, comment: str) -> bool:
    """Whether a text holds that, as a comment."""
    return any(comment in index.text_of(span) for span in index.content.comments)


def _says(index: TextIndex) -> list[object]:
    """What a text says beside its comments."""
    content = index.content
    words = [[word.text for word in command.words] for command in content.commands]
    packages = [(item.name, item.specifier, item.marker, item.locked) for item in content.requirements]
    return [[(item.kind, item.name, item.value) for item in content.settings], words, packages]
