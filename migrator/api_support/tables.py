"""Reading and writing the tables of ``api_db/``, and their version ranges."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from migrator.data_folders import data_folder

Version = tuple[int, ...]


@cache
def as_tuple(text: str) -> Version:
    """``'2.6.0'`` as ``(2, 6, 0)``."""
    return tuple(int(part) for part in text.split("."))


def covers(first: str, last: str, version: Version) -> bool:
    """Whether a row's range holds a version; an empty end is open."""
    return (not first or as_tuple(first) <= version) and (not last or version <= as_tuple(last))


def rows(table: str) -> Iterator[list[str]]:
    """The rows of ``api_db/<table>.csv``, without its header.

    Raises FileNotFoundError where the table is missing.
    """
    with open(data_folder("api_db") / f"{table}.csv", encoding="utf-8", newline="") as file:
        reader = csv.reader(file)
        next(reader)
        yield from reader


def lines(table: str) -> list[str]:
    """The lines of a table whose cells hold no comma and no quote, without its header."""
    text = (data_folder("api_db") / f"{table}.csv").read_text(encoding="utf-8")
    return text.splitlines()[1:]


def write(path: Path, columns: Sequence[str], records: Iterable[Sequence[str]]) -> None:
    """Write a table sorted, with ``\\n`` line ends: the same rows give the same bytes."""
    in_order = sorted((list(record) for record in records), key=_order)
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(in_order)


def _order(record: list[str]) -> list[tuple[int, Version, str]]:
    # Versions sort as numbers, 2.10.0 behind 2.9.0; everything else as text.
    return [
        (1, as_tuple(cell), "") if cell.replace(".", "").isdigit() and "." in cell else (0, (), cell)
        for cell in record
    ]


def ranges(
    values: dict[str, tuple[str, ...]], order: Sequence[str]
) -> list[tuple[str, str, tuple[str, ...]]]:
    """Fold a value per version into ranges ``(from, to, value)``.

    ``order`` lists the versions for which there is evidence, oldest first. A
    version without a value breaks a range. An end is left open ('') where it
    is the oldest or the newest of ``order``.
    """
    folded: list[tuple[str, str, tuple[str, ...]]] = []
    previous = None
    for version in order:
        value = values.get(version)
        if value is not None and value == previous:
            folded[-1] = (folded[-1][0], version, value)
        elif value is not None:
            folded.append((version, version, value))
        previous = value
    return [
        ("" if first == order[0] else first, "" if last == order[-1] else last, value)
        for first, last, value in folded
    ]
