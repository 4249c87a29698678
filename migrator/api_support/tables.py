"""Reading and writing the tables of ``api_db/``, and their version ranges."""

from __future__ import annotations

import csv
import os
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Optional, TypeVar

from migrator import __version__
from migrator.data_folders import data_folder
from migrator.language import N_, _

Version = tuple[int, ...]
Key = TypeVar("Key")
Value = TypeVar("Value")

VARIABLE = "NPUMIGRATE_API_DB"
_PART = 8192  # bytes
COLUMNS = {
    "aliases": "alias api",
    "api_support": "api from to status hardware dtypes limits npu_name aten source",
    "by_hand/areas": "name status note source",
    "by_hand/composed": "api program",
    "by_hand/library_defaults": "api argument library harmless default value outcome unless evidence"
    " statement advice",
    "by_hand/npu_names": "cuda_name from to npu_name unchanged caveat advice source",
    "by_hand/operators": "api operator kernel_decides source",
    "composed": "api operators sometimes backward source",
    "custom_ops": "api from to kind replaces replaces_source use_instead evidence",
    "env_vars": "name npu_name same_values values advice source",
    "kernels": "op from to kind source",
    "library_defaults": "api argument position names library since until harmless default value outcome"
    " unless statement advice source",
    "launch_commands": "command starts positionals others flags values variables source",
    "limits": "code meaning",
    "mentioned_names": "name versions",
    "native_functions": "operator from to kind",
    "npu_names": "cuda_name from to kind npu_name unchanged advice source",
    "program_options": "programs options values needs_autoload advice source",
    "reached": "name from to how always sometimes",
    "npu_variables": "name default values meaning hardware note source",
    "releases": "torch_npu torch python torchvision torchaudio cann driver apex source",
    "shared_names": "cuda_name shared_name without_device source",
    "source_names": "cuda_name kind looked_up found_at",
    "torch_names": "name from to kind of parameters",
    "torch_wheels": "torch torch_wheel torchvision_wheel torchaudio_wheel source",
    "versions": "torch torch_npu evidence torch_wheel npu_wheel int_device_is_npu has_set_default_device "
    "has_oom_error has_amp_grad_scaler autoloads_backends source",
    "wheel_names": "module name kind from to",
}


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


@cache
def in_force() -> Path:
    """The folder with the tables that are used.

    It is the one that the environment variable NPUMIGRATE_API_DB names, or
    the user's own where releases were added to it, or the one that came with
    npumigrate. Raises FileNotFoundError where the variable names no such folder.
    """
    chosen = os.environ.get(VARIABLE)
    if chosen:
        if not (Path(chosen) / "versions.csv").is_file():
            why = N_("{variable}={chosen}: that is not a folder of tables (npumigrate db build)")
            raise FileNotFoundError(_(why, variable=VARIABLE, chosen=chosen))
        return Path(chosen)
    packaged = data_folder("api_db")
    own = users_folder()
    return own if is_installed(packaged) and (own / "versions.csv").is_file() else packaged


def users_folder() -> Path:
    """Where releases are added when npumigrate is installed from a wheel (XDG base directory specification).

    Each version of npumigrate has its own: an older one's tables would hide what a newer one brings.
    """
    base = os.environ.get("XDG_DATA_HOME", "")
    share = Path(base) if os.path.isabs(base) else Path.home() / ".local" / "share"
    return share / "npumigrate" / __version__ / "api_db"


def writable() -> Path:
    """Where ``db build`` adds releases: the chosen folder, a checkout's, or the user's own."""
    packaged = data_folder("api_db")
    if os.environ.get(VARIABLE):
        return in_force()
    return users_folder() if is_installed(packaged) else packaged


def is_installed(packaged: Path) -> bool:
    """Whether the folder of tables that came with npumigrate lies in a package, not in a checkout."""
    return packaged.parent.name == "data"


def inside(first: str, last: str, order: Iterable[str]) -> list[str]:
    """The versions of ``order`` that a row's range holds."""
    return [version for version in order if covers(first, last, as_tuple(version))]


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


def records(table: str, folder: Path) -> list[dict[str, str]]:
    """The rows of a table by its columns' names. Raises FileNotFoundError where the table is missing."""
    with open(folder / f"{table}.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def order(folder: Path, table: str = "versions") -> list[str]:
    """The torch versions that the tables in a folder are about, or those of torch_wheels, oldest first."""
    return [row[0] for row in rows(table, folder)]


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


def write_as_they_are(path: Path, columns: Sequence[str], records: Iterable[Sequence[str]]) -> None:
    """Write a table that has an order of its own, with ``\\n`` line ends."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(records)


def write_in(folder: Path, table: str, records: Iterable[Sequence[str]]) -> None:
    """Write one of the tables, with its columns, sorted: the same rows give the same bytes."""
    in_order: list[list[str]] = sorted((list(record) for record in records), key=_order)
    write_as_they_are(folder / f"{table}.csv", COLUMNS[table].split(), in_order)


def _order(record: list[str]) -> list[tuple[int, Version, str]]:
    # Versions sort as numbers, 2.10.0 behind 2.9.0; everything else as text.
    return [
        (1, as_tuple(cell), "") if cell.replace(".", "").isdigit() and "." in cell else (0, (), cell)
        for cell in record
    ]


def spans(held: Mapping[Key, Collection[str]], order: Sequence[str]) -> Iterator[tuple[Key, str, str]]:
    """Each key with each range of the versions that hold it, its ends as in ``ranges``."""
    for key, versions in held.items():
        for first, last, _value in ranges(dict.fromkeys(versions, ()), order):
            yield key, first, last


def ranges(values: Mapping[str, Value], order: Sequence[str]) -> list[tuple[str, str, Value]]:
    """Fold a value per version into ranges ``(from, to, value)``.

    ``order`` lists the versions for which there is evidence, oldest first. A
    version without a value breaks a range. An end is left open ('') where it
    is the oldest or the newest of ``order``.
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
