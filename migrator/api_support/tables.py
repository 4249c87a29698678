"""Reading the tables of ``api_db/``, and their version ranges."""

from __future__ import annotations

import csv
import os
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Optional, Protocol, TypeVar

from migrator.data_folders import NoFolderError, data_folder
from migrator.language import N_

Version = tuple[int, ...]
Key = TypeVar("Key")
Value = TypeVar("Value")


class _Ranged(Protocol):
    """What holds from one torch version to another; an end that is '' is open."""

    @property
    def first(self) -> str: ...
    @property
    def last(self) -> str: ...


Ranged = TypeVar("Ranged", bound=_Ranged)
VARIABLE = "NPUMIGRATE_API_DB"
_PART = 8192  # bytes


@cache
def as_tuple(text: str) -> Version:
    """``'2.6.0'`` as ``(2, 6, 0)``."""
    return tuple(int(part) for part in text.split("."))


def covers(first: str, last: str, version: Version) -> bool:
    """Whether a row's range holds a version; an empty end is open."""
    return (not first or as_tuple(first) <= version) and (not last or version <= as_tuple(last))


def holds_at(span: str, version: Version) -> bool:
    """Whether a range written as ``from-to`` holds a version; '' does."""
    first, _, last = span.partition("-")
    return covers(first, last, version)


def at(rows: Iterable[Ranged], version: Version) -> list[Ranged]:
    """The rows whose range holds a version."""
    return [row for row in rows if covers(row.first, row.last, version)]


def first_at(rows: Iterable[Ranged], version: Version) -> Optional[Ranged]:
    """The first row whose range holds a version; None where there is none."""
    return next((row for row in rows if covers(row.first, row.last, version)), None)


@cache
def in_force() -> Path:
    """The folder with the tables that are used.

    It is the one that the environment variable NPUMIGRATE_API_DB names, or the one that came with
    npumigrate. Raises NoFolderError where the variable names no such folder.
    """
    chosen = os.environ.get(VARIABLE)
    if chosen:
        if not (Path(chosen) / "versions.csv").is_file():
            why = N_("{variable}={chosen}: not a folder of tables")
            raise NoFolderError(why, variable=VARIABLE, chosen=chosen)
        return Path(chosen)
    return data_folder("api_db")


def rows(table: str, folder: Optional[Path] = None) -> Iterator[list[str]]:
    """The rows of a table without its header; of those in force, unless a folder is given.

    Raises FileNotFoundError where the table is missing.
    """
    with open((folder or in_force()) / f"{table}.csv", encoding="utf-8", newline="") as file:
        reader = csv.reader(file)
        next(reader)
        yield from reader


@cache
def grouped(table: str, column: int = 0) -> dict[str, list[list[str]]]:
    """The rows of a table in force by what stands in a column, in their order."""
    found: dict[str, list[list[str]]] = {}
    for row in rows(table):
        found.setdefault(row[column], []).append(row)
    return found


def rows_at(table: str, version: Version) -> list[list[str]]:
    """The rows in force that hold at a torch version, of a table whose second and third cells are a range."""
    return [row for row in rows(table) if covers(row[1], row[2], version)]


def lines(table: str) -> list[str]:
    """The lines of a table whose cells hold no comma and no quote, without its header."""
    return _content(table).decode("utf-8").splitlines()[1:]


def starting(table: str, prefix: str) -> list[str]:
    """The lines that begin with ``prefix``, of a table such as ``lines`` reads."""
    content, wanted = _content(table), prefix.encode()
    first = end = _first_place(table, wanted)
    while 0 < end < len(content) and content.startswith(wanted, end):
        end = content.index(b"\n", end) + 1
    return content[first:end].decode("utf-8").splitlines()


def has_line(table: str, prefix: str) -> bool:
    """Whether ``starting`` gives any line."""
    return _first_place(table, prefix.encode()) > 0


def _first_place(table: str, wanted: bytes) -> int:
    """Where the first line with a beginning begins; 0 where there is none.

    Lines are sorted, and a comma sorts before everything that names hold: only one part of the table is read.
    """
    places, beginnings = _parts(table)
    part = max(bisect_left(beginnings, wanted) - 1, 0)
    return _content(table).find(b"\n" + wanted, places[part], places[part + 1] + 1 + len(wanted)) + 1


@cache
def _parts(table: str) -> tuple[list[int], list[bytes]]:
    """Where a table's parts of some thousand bytes begin, each with the end of a line; their first lines."""
    content = _content(table)
    places = [content.index(b"\n")]
    beginnings = []
    while places[-1] + 1 < len(content):
        beginnings.append(content[places[-1] + 1 : content.index(b"\n", places[-1] + 1)])
        places.append(content.index(b"\n", min(places[-1] + _PART, len(content) - 1)))
    return [*places, places[-1]], beginnings


@cache
def _content(table: str) -> bytes:
    return (in_force() / f"{table}.csv").read_bytes()


def ranges(values: Mapping[str, Value], order: Sequence[str]) -> list[tuple[str, str, Value]]:
    """Fold a value per version into ranges ``(from, to, value)``.

    ``order`` lists the versions for which there is evidence, oldest first. A version without a value breaks a
    range. An end is left open ('') where it is the oldest or the newest of ``order``.
    """
    folded: list[tuple[str, str, Value]] = []
    previous: Optional[Value] = None
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
