"""Projects written for the command line, and what a command made of them."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path


def write(folder: Path, files: Mapping[str, str]) -> Path:
    """A folder with these texts in it."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def rows(table: Path) -> list[dict[str, str]]:
    """The rows of a report."""
    with table.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def tree(folder: Path) -> dict[str, bytes]:
    """Each file below a folder."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def python_files(folder: Path) -> dict[str, str]:
    """The text of each Python file below a folder."""
    return {name: data.decode() for name, data in tree(folder).items() if name.endswith(".py")}
