"""Where a result goes, and what is known by its name."""

from __future__ import annotations

import os
from pathlib import Path

SUFFIX = "_msft"
MULTI_SUFFIX = "_msft_multi"  # of a project that was for one device
ANALYSIS_SUFFIX = "_analysis"
EQUIVALENTS = "ascend_function"  # the package of functions that a migration may add
MADE = "Made by npumigrate"  # how it begins, and each module that rules add

_BEGINNING = 1000  # bytes that are looked at for a mark


def result_folder(source: Path, out: Path, suffix: str = SUFFIX) -> Path:
    """``out/<name><suffix>`` for the folder ``<name>`` or the file ``<name>.py``.

    A link's own name counts, not that of its target. The root of a file system
    has no name: it gives ``out/_msft``, which ``output_tree`` refuses.
    """
    name = os.path.basename(os.path.abspath(source))
    if not os.path.isdir(source):
        name = os.path.splitext(name)[0]
    return Path(out) / f"{name}{suffix}"


def inside(path: str | os.PathLike[str], folder: str | os.PathLike[str]) -> str | None:
    """The real ``path`` relative to the real ``folder``; ``.`` for that itself, None elsewhere.

    Both must be resolved already. ``os.path.relpath`` would raise between two Windows drives.
    """
    path, prefix = os.fspath(path), os.path.join(folder, "")
    if path == os.fspath(folder):
        return "."
    return path[len(prefix) :].replace(os.sep, "/") if path.startswith(prefix) else None


def is_made(path: str | Path, file: str, mark: str) -> bool:
    """Whether a file is the module ``file`` of an earlier migration, which has a mark at its beginning."""
    if os.path.basename(path) != file:
        return False
    try:
        with open(path, "rb") as module:
            return mark.encode() in module.read(_BEGINNING)
    except OSError:
        return False


def is_equivalents(folder: str) -> bool:
    """Whether a folder is the package of functions of an earlier migration: it is ours, not the user's."""
    init = os.path.join(folder, "__init__.py")
    name = os.path.basename(folder)
    return name.startswith(EQUIVALENTS) and is_made(init, "__init__.py", f'"""{MADE}')
