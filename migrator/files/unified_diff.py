"""Unified diffs, in the bytes of the files: one that ``patch -p1`` applies, and what one changes."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

_HUNK = re.compile(rb"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_NO_NEWLINE = b"\n\\ No newline at end of file\n"


def unified_diff(name: str, before: bytes, after: bytes) -> bytes:
    """The diff from ``before`` to ``after`` of the file ``name``; empty where they are equal."""
    path = name.encode("utf-8", "surrogateescape")
    end = b"\t" if b" " in path else b""  # ends the name for patch, so that names with spaces are read whole
    old, new = b"a/" + path + end, b"b/" + path + end
    lines = difflib.diff_bytes(difflib.unified_diff, _lines(before), _lines(after), old, new)
    return b"".join(line if line.endswith(b"\n") else line + _NO_NEWLINE for line in lines)


def _lines(text: bytes) -> list[bytes]:
    # Not splitlines(): it also splits at \r and \f, which patch takes for part of a line.
    parts = text.split(b"\n")
    lines = [part + b"\n" for part in parts[:-1]]
    return [*lines, parts[-1]] if parts[-1] else lines


def changed_files(diff: bytes) -> Iterator[tuple[bytes, list[int], int]]:
    """Each file by its new name, as ``b/...``, with the rows that it gains and how many it loses.

    There may be context: who asks git may want it between hunks.
    """
    name, rows, lost = b"", list[int](), 0
    before = after = row = 0  # lines of the hunk that are still to come: they may look like anything
    for line in diff.split(b"\n"):
        if before or after:
            kind = line[:1] or b" "
            before -= kind in b"- "
            after -= kind in b"+ "
            lost += kind == b"-"
            if kind == b"+":
                rows.append(row)
            row += kind in b"+ "
        elif line.startswith(b"+++ "):
            if name:
                yield name, rows, lost
            name, rows, lost = line[4:].split(b"\t", 1)[0], [], 0
            if line[4:5] == b'"':  # git puts quotes around a name with other than plain characters
                name = line[5 : line.rindex(b'"')].decode("unicode_escape").encode("latin-1")
        elif match := _HUNK.match(line):
            before, row, after = (int(part or 1) for part in match.groups())
    if name:
        yield name, rows, lost
