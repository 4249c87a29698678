"""The files of profilers, read a piece at a time: traces of any size, tables, pickles that run nothing."""

from __future__ import annotations

import csv
import gzip
import io
import json
import pickle  # nosec B403 # see _Plain
import re
import zlib
from collections.abc import Iterator, Sequence
from math import isfinite
from pathlib import Path
from typing import IO, Any

from migrator.files.errors import reason, shown
from migrator.language import N_, UserError, _

_PIECE = 1 << 20  # characters of a trace that are held at a time
_LONGEST = 16 << 20  # of one event
_BLANK = re.compile(r"[\s,]*")
_ARRAY = re.compile(r'\s*(?:\[|\{.*?"traceEvents"\s*:\s*\[)', re.DOTALL)
_READING = (OSError, EOFError, zlib.error, csv.Error, ValueError, RecursionError)  # what may go wrong


class ProfileError(UserError):
    """A profile, or a file of one, that cannot be used: one line for the user."""


def unreadable(path: Path, error: Exception) -> str:
    """The line on a file that cannot be read."""
    what = reason(error) if isinstance(error, OSError) else shown(str(error)) or type(error).__name__
    return f"{shown(path.name)}: {_('cannot be read: {error}', error=what)}"


def events(path: Path, notes: list[str]) -> Iterator[dict[str, Any]]:
    """The events of a chrome trace, also of a packed one; no more than a piece of it is in memory.

    A trace that breaks off, as after an interrupted run, gives the events before that, which is noted.
    Raises ProfileError where there is none.
    """
    count = 0
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            for event in _objects(io.TextIOWrapper(file, "utf-8", "replace")):
                count += 1
                yield event
    except _READING as error:
        if not count:
            raise ProfileError("{line}", line=unreadable(path, error)) from None
        said = N_("{line}; only the {count} events before it count")
        notes.append(_(said, line=unreadable(path, error), count=count))


def _objects(file: IO[str]) -> Iterator[dict[str, Any]]:
    """The objects in the array of a trace. Raises ValueError where it goes wrong."""
    text, decoder = file.read(_PIECE), json.JSONDecoder()
    start = _ARRAY.match(text)
    if not start:
        raise ValueError(_("not a list of events"))
    at = start.end()
    while not text.startswith("]", at := _BLANK.match(text, at).end()):  # type: ignore[union-attr]
        try:
            event, at = decoder.raw_decode(text, at)
        except ValueError:
            more = file.read(_PIECE)
            if not more or len(text) > _LONGEST:
                raise
            text, at = text[at:] + more, 0
            continue
        if isinstance(event, dict):
            yield event


def rows(path: Path, needed: Sequence[str], notes: list[str]) -> Iterator[dict[str, str]]:
    """The rows of a table by its column names; none where there is no such file.

    A table without a ``needed`` column, or one that cannot be read to its end, is noted in one line.
    """
    csv.field_size_limit(_LONGEST)  # call stacks are long
    try:
        with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
            reader = csv.DictReader((line.replace("\0", "") for line in file), restval="")
            if lacking := [name for name in needed if name not in (reader.fieldnames or ())]:
                said = N_("{name} has no column {column}: left out")
                return notes.append(_(said, name=shown(path.name), column=", ".join(lacking)))
            for row in reader:
                yield {name: value.strip() for name, value in row.items() if isinstance(value, str)}
    except FileNotFoundError:
        return None
    except _READING as error:
        notes.append(unreadable(path, error))


def number(row: dict[str, str], name: str) -> float:
    """A number of a row; 0 where the profiler has none (``N/A``, nothing)."""
    try:
        found = float(row.get(name) or 0)
    except ValueError:
        return 0.0
    return found if isfinite(found) else 0.0


def content(path: Path, notes: list[str]) -> dict[str, Any]:
    """The object in a small JSON file; empty where there is none, or a broken one, which is noted."""
    try:
        read = json.loads(path.read_bytes()) if path.exists() else {}
        return read if isinstance(read, dict) else {}
    except _READING as error:
        notes.append(unreadable(path, error))
        return {}


class _Plain(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """Never gives one."""
        raise pickle.UnpicklingError(f"{module}.{name}")


def unpickled(path: Path) -> Any:
    """What is in a pickle of dictionaries, lists, texts and numbers alone; others are refused.

    Nothing of it is run. Raises ProfileError.
    """
    try:
        with path.open("rb") as file:
            return _Plain(file).load()
    except Exception as error:  # the bytes may be anything
        raise ProfileError("{line}", line=unreadable(path, error)) from None
