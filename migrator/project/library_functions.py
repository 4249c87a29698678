"""Functions of a library that the analysis ``third_party`` has judged, read back for projects that use it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path

from migrator.files.errors import SourceError, Unreadable, shown
from migrator.files.source import LARGEST, read_settings
from migrator.language import N_
from migrator.light import Frozen

_COLUMNS = ("API", "Kind", "Verdict", "OP", "Condition", "Chain", "Tips", "Also")
# What a project gets a report of. What works once it is migrated is no news for the library's users.
_TOLD = ("unsupported", "unknown")


class LibraryFunction(Frozen):
    """A function, method or class of a library: what it comes to, on what condition and by what calls."""

    name: str
    verdict: str  # unsupported | unknown
    reached: str
    condition: str
    chain: str
    tips: str


def read_api_files(files: Iterable[Path]) -> Mapping[str, LibraryFunction]:
    """The functions in tables of the analysis ``third_party``, by each of their names.

    Raises SourceError, with file and line, for what is no such table.
    """
    found: dict[str, LibraryFunction] = {}
    for file in files:
        try:
            with io.StringIO(read_settings(file, LARGEST).decode("utf-8-sig"), newline="") as stream:
                reader = csv.DictReader(stream)
                missing = [column for column in _COLUMNS if column not in (reader.fieldnames or ())]
                if missing:
                    raise SourceError(
                        "{file}:1: the column {missing} is missing: --api-files takes tables that "
                        "npumigrate analyze -m third_party wrote, such as full_unsupported_results.csv",
                        file=shown(file),
                        missing=missing[0],
                    )
                for row in reader:
                    if None in row.values() or row["Verdict"] not in (*_TOLD, "migration_needed"):
                        said = N_("{file}:{line_num}: not a row of such a table")
                        raise SourceError(said, file=shown(file), line_num=reader.line_num)
                    if row["Verdict"] in _TOLD and row["Kind"] != "module":
                        _add(found, row)
        except (Unreadable, UnicodeDecodeError, csv.Error) as error:
            raise SourceError(f"{shown(file)}: {error}") from None
    return found


def _add(found: dict[str, LibraryFunction], row: Mapping[str, str]) -> None:
    for name in (row["API"], *row["Also"].split()):
        known = found.get(name)
        if known is None or known.verdict == "unknown":
            found[name] = LibraryFunction(
                name, row["Verdict"], row["OP"], row["Condition"], row["Chain"], row["Tips"]
            )
