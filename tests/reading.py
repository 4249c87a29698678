"""What tests write before a run and read after it."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path


def write(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files below a folder, by their names; gives the folder."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        data = content if isinstance(content, bytes) else content.encode("utf-8")
        (folder / name).write_bytes(data)
    return folder


def tree(folder: Path) -> dict[str, bytes]:
    """All files below a folder, by their names."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def sources(result: Path) -> dict[str, bytes]:
    """The files of a migration's result without its reports."""
    return {name: data for name, data in tree(result).items() if not name.startswith("migration_report/")}


def python_files(result: Path) -> dict[str, str]:
    """The text of each Python file of a result."""
    return {name: data.decode() for name, data in sources(result).items() if name.endswith(".py")}


def rows(folder: Path, table: str) -> list[dict[str, str]]:
    """The rows of a report, in its folder or that of a migration's result."""
    reports = folder / "migration_report"
    place = (reports if reports.is_dir() else folder) / f"{table}.csv"
    with place.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))
