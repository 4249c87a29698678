"""Functions of other files that TorchScript may compile, because a file of modules or of scripts calls them.

What is called in such a file is taken for compiled: to see which calls ``forward`` reaches would need a tree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from migrator.names.written_names import imported_names
from migrator.project.module_names import absolute_name

SCRIPT, FORWARD = "script", "forward"
_CALLED = re.compile(r"(?<![\w.])([^\W\d]\w*)(?:\.([^\W\d]\w*))?\(")
_GIVEN = re.compile(r"\bscript\(\s*([\w.]+)")


def scan_called(file: str, text: str) -> Iterator[str]:
    """``acme.gate=forward`` for what a file with a ``forward()`` calls, ``=script`` beside jit.script."""
    why = SCRIPT if "jit.script" in text else FORWARD if "def forward(" in text else ""
    if not why:
        return
    names = ((bound, full) for bound, full in imported_names(text) if not full.startswith("torch"))
    # A file mostly calls nothing of what it imports so: then its calls need not be listed.
    known = [
        (bound, absolute_name(full, file))
        for bound, full in names
        if f"{bound}." in text or (bound[:1].islower() and f"{bound}(" in text) or why == SCRIPT
    ]
    called = {*_CALLED.findall(text), *((name, "") for name in _GIVEN.findall(text))} if known else set()
    for bound, name in known:
        yield from (
            f"{name}.{member}={why}" if member else f"{name}={why}"
            for holder, member in called
            if holder == bound and (member or bound)[:1].islower()
        )
