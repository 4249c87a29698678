"""Where a symbolic link of the input leads in the result."""

from __future__ import annotations

import os
from pathlib import Path

from migrator.files.naming import inside


def new_text(text: str, link: Path, name: str, source: Path, result: Path) -> tuple[str, bool]:
    """The text of a link in ``result`` for one at ``link`` with ``text``; does it lead into ``source``?

    ``name`` is its path relative to ``source``. Nothing has to exist.

    A relative link that stays inside ``source`` keeps its text. Any other link into
    it is made relative, so that the result does not run the input's files. Any
    other link out of it is made to lead to the same place as before.
    """
    folder = os.path.dirname(name)
    if not os.path.isabs(text):
        way = os.path.normpath(os.path.join(folder, text))
        if way != os.pardir and not way.startswith(os.path.join(os.pardir, "")):
            return text, True
    # Only the way to the target is resolved: the target may be a link too, and is copied as one.
    way, last = os.path.split(os.path.join(os.path.realpath(os.path.dirname(link)), text))
    if last in ("", os.curdir, os.pardir):
        way, last = os.path.split(os.path.realpath(os.path.join(way, last)))
    target = os.path.join(os.path.realpath(way), last)
    into = inside(target, os.path.realpath(source))
    if into is not None:
        return os.path.relpath(into, folder or os.curdir), True
    same = os.path.normpath(os.path.join(os.path.realpath(result), folder, text)) == target
    return (text if same or os.path.isabs(text) else target), False
