"""The lines of a project's files that say which libraries it wants."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

# In this order: what comes first counts most.
FILES = (
    *("requirements*.txt", "requirements/*.txt", "pyproject.toml", "setup.cfg", "setup.py"),
    *("environment*.yml", "environment*.yaml", "conda*.yml", "conda*.yaml", "Pipfile"),
)
# What people are told to type: "pip install timm==0.4.12".
GUIDES = ("INSTALL*.md", "README*.md", "*.md")
_LARGEST = 1 << 20
_SIGNS = ("=", "<", ">")


def requirement_lines(folder: Path, files: tuple[str, ...] = FILES) -> Iterator[tuple[str, int, str]]:
    """Each line of the files that fit a pattern, with the name of its file and its number.

    What cannot be read is left out.
    """
    folders = {pattern.rpartition("/")[0] for pattern in files}
    names = {inside: _names(os.path.join(folder, inside)) for inside in folders}
    known: set[str] = set()
    for pattern in files:
        inside, _, last = pattern.rpartition("/")
        for base in names[inside]:
            name = f"{inside}/{base}" if inside else base
            if name not in known and _fits(base, last):
                known.add(name)
                for number, line in enumerate(_lines(folder / name), 1):
                    yield name, number, line


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def lines_with_versions(folder: Path) -> Iterator[str]:
    """The lines that may ask for a version of something, of requirements and of guides."""
    for name, _, line in requirement_lines(folder, (*FILES, *GUIDES)):
        if any(sign in line for sign in _SIGNS) and (not name.endswith(".md") or " install " in line):
            yield line


def _fits(name: str, pattern: str) -> bool:
    """Whether a name is what a pattern with one ``*`` at most says; ``fnmatch`` compiles each pattern."""
    begin, star, end = pattern.partition("*")
    if not star:
        return name == pattern
    return len(name) >= len(begin + end) and name.startswith(begin) and name.endswith(end)


def _lines(path: Path) -> list[str]:
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST:
            return []
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
