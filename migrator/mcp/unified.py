"""Reading a unified diff: which files it changes, and its beginning up to a length."""

from __future__ import annotations

import re
from collections.abc import Iterator

_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")


def changed_files(diff: str) -> Iterator[tuple[str, int, int]]:
    """The name of each file, and how many lines it gains and loses."""
    name, added, removed = "", 0, 0
    old = new = 0  # lines that the present hunk still has
    for line in diff.split("\n"):
        if old > 0 or new > 0:
            if line.startswith("\\"):  # no newline at the end of the file
                continue
            old -= not line.startswith("+")
            new -= not line.startswith("-")
            added += line.startswith("+")
            removed += line.startswith("-")
        elif line.startswith("+++ "):
            if name:
                yield name, added, removed
            name, added, removed = line[4:].split("\t")[0].removeprefix("b/"), 0, 0
        elif found := _HUNK.match(line):
            old, new = (1 if count is None else int(count) for count in found.groups())
    if name:
        yield name, added, removed


def cut(text: str, most: int) -> tuple[str, bool]:
    """The whole lines of the first ``most`` characters, and whether that is all."""
    if len(text) <= most:
        return text, True
    return text[: text.rfind("\n", 0, most) + 1], False
