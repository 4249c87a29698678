"""A unified diff of one file, in the bytes of that file, so that ``patch -p1`` applies it."""

from __future__ import annotations

import difflib

_NO_NEWLINE = b"\n\\ No newline at end of file\n"


def unified_diff(name: str, before: bytes, after: bytes) -> bytes:
    """The diff from ``before`` to ``after`` of the file ``name``; empty where they are equal."""
    path = name.encode("utf-8", "surrogateescape")
    lines = difflib.diff_bytes(
        difflib.unified_diff, _lines(before), _lines(after), _label(b"a/" + path), _label(b"b/" + path)
    )
    return b"".join(line if line.endswith(b"\n") else line + _NO_NEWLINE for line in lines)


def _lines(text: bytes) -> list[bytes]:
    # Not splitlines(): it also splits at \r and \f, which patch takes for part of a line.
    parts = text.split(b"\n")
    lines = [part + b"\n" for part in parts[:-1]]
    return [*lines, parts[-1]] if parts[-1] else lines


def _label(path: bytes) -> bytes:
    # A tab ends the name for patch, so that names with spaces are read whole.
    return path + b"\t" if b" " in path else path
