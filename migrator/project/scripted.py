"""Functions of other files that TorchScript may compile, because a file of modules or of scripts calls them.

What is called in such a file is taken for compiled: to see which calls ``forward`` reaches would need a tree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from migrator.names.written_names import imported_names
from migrator.project.module_names import absolute_name

SCRIPT, FORWARD = "script", "forward"
_BEFORE = re.compile(r"[\w.]")
_BEHIND = re.compile(r"(?:\.([^\W\d]\w*))?\(")
_GIVEN = re.compile(r"\bscript\(\s*([\w.]+)")


def scan_called(file: str, text: str) -> Iterator[str]:
    """``acme.gate=forward`` for what a file with a ``forward()`` calls, ``=script`` beside jit.script."""
    why = SCRIPT if "jit.script" in text else FORWARD if "def forward(" in text else ""
    if not why:
        return
    names = ((bound, full) for bound, full in imported_names(text) if not full.startswith("torch"))
    scripted = set(_GIVEN.findall(text))
    for bound, full in names:
        if why == FORWARD and f"{bound}." not in text and f"{bound}(" not in text:
            continue
        called = _called(text, bound)
        if bound in scripted:
            called.add("")
        lower = {member for member in called if (member or bound)[:1].islower()}
        name = absolute_name(full, file) if lower else ""
        yield from (f"{name}.{member}={why}" if member else f"{name}={why}" for member in lower)


def _called(text: str, name: str) -> set[str]:
    """The members of a name that a text calls; an empty one where it calls the name itself."""
    found = set()
    place = text.find(name)
    while place >= 0:
        behind = _BEHIND.match(text, place + len(name))
        if behind and not _BEFORE.match(text, place - 1 if place else len(text)):
            found.add(behind[1] or "")
        place = text.find(name, place + len(name))
    return found
