"""Which input and output go together, and what a result may replace."""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress
from pathlib import Path

from migrator.files.errors import CannotWrite, ResultExists, Unreadable, cannot_write, shown, unreadable
from migrator.files.naming import SUFFIX, inside

# By these files a folder is known to be a result of ours, which --overwrite may replace.
SUMMARY = "migration_report/summary.json"
_OF_ANALYSIS = ("summary.json", "npumigrate.log")


def check_places(source: Path, out: Path, result: Path) -> None:
    """Is there an input, and does no part of it lie where the result goes? Raises Unreadable, CannotWrite."""
    try:
        mode = os.stat(source).st_mode
    except OSError as error:
        raise Unreadable(f"{shown(source)} {unreadable(error)}") from error
    if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
        raise Unreadable(f"{shown(source)} is neither a folder nor a file")
    if os.path.dirname(os.path.abspath(source)) == os.path.abspath(source):
        raise CannotWrite(f"{shown(source)} has no name to call a result by: choose a folder in it with -i")
    real_source, real_result = os.path.realpath(source), os.path.realpath(result)
    if os.path.realpath(out) == real_source:
        raise CannotWrite(f"{shown(out)} is the input: choose another output folder with -o")
    if inside(real_source, real_result) is not None:
        raise CannotWrite(f"the input lies in {shown(result)}, where the result belongs: choose another -o")


def check_free(result: Path, overwrite: bool) -> None:
    """Can ``result`` be put there? Raises ResultExists where not, CannotWrite for a name that is too long."""
    longest = _longest_name(result.parent)
    length = len(os.fsencode(result.name))
    if length > longest:
        raise CannotWrite(
            f"{shown(result.name)}, the name of the result, has {length} bytes where {longest} are the most: "
            "rename the input"
        )
    try:
        mode = os.lstat(result).st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise cannot_write(error, result) from error
    if not stat.S_ISDIR(mode):
        raise ResultExists(f"{shown(result)} exists and is not a folder: move it away or choose another -o")
    if not overwrite:
        raise ResultExists(f"{shown(result)} exists: replace it with --overwrite or choose another -o")
    try:
        names = os.listdir(result)
        ours = not names or os.path.isfile(result / SUMMARY) or set(names).issuperset(_OF_ANALYSIS)
    except OSError as error:
        raise cannot_write(error, result) from error
    if not ours:
        wanted = SUMMARY if result.name.endswith(SUFFIX) else _OF_ANALYSIS[0]
        raise ResultExists(
            f"{shown(result)} has no {wanted}, so it is no earlier result and stays: move it away"
        )


def _longest_name(folder: Path) -> int:
    if sys.platform != "win32":
        with suppress(OSError, ValueError):
            return os.pathconf(folder, "PC_NAME_MAX")
    return 255
