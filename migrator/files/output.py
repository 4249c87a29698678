"""The result: built beside its final place, put there by one rename.

    with output_tree(source, out) as tree:
        for entry in discover(source, avoid=tree.result):
            copy(tree, entry)  # or write(tree, entry, data)
        add(tree, "migration_report/summary.json", data)

Leaving the block puts the result in place. An exception in it, KeyboardInterrupt
included, removes what was built: the final place holds what it held before.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from migrator.files.errors import CannotWrite, ResultExists, Unreadable, cannot_write, shown, unreadable
from migrator.files.naming import SUFFIX, inside, result_folder
from migrator.files.staging import Staging, claim, discard, recover
from migrator.files.writing import OutputTree, add, copy, set_mode, write
from migrator.language import N_

__all__ = ["CannotWrite", "OutputTree", "ResultExists", "Unreadable", "add", "copy", "output_tree", "write"]


# By these files a folder is known to be a result of ours, which --overwrite may replace.
SUMMARY = "migration_report/summary.json"
_OF_ANALYSIS = ("summary.json", "npumigrate.log")


@contextmanager
def output_tree(
    source: Path, out: Path, overwrite: bool = False, suffix: str = SUFFIX
) -> Iterator[OutputTree]:
    """Prepare ``out/<name><suffix>``; put it in place when the block ends without an exception.

    ``overwrite`` replaces an empty folder or an earlier result. Leftovers of runs
    that were killed are cleared; a result that such a run had set aside comes back.

    Raises Unreadable where there is no input, ResultExists where something lies
    at the result's place, CannotWrite where nothing can be written there or input
    and output are one another or the input lies in the result. An interrupt that
    comes after the rename leaves the new result in place.
    """
    result = result_folder(source, out, suffix)
    _check_places(source, out, result)
    missing = []  # of the folder and those around it, the innermost first
    folder = os.path.abspath(out)
    while not os.path.lexists(folder) and folder != os.path.dirname(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    try:
        _make_folder(out)
        recover(result)
        _check_free(result, overwrite)
        staging = claim(result)
        try:
            tree = OutputTree(source, result, staging.folder / "new")
            _make_folder(tree.building)
            yield tree
            _finish(tree, staging, overwrite)
        finally:
            discard(staging, result)
    finally:
        for folder in missing:  # takes back what was made and stayed empty: nothing after a success
            with suppress(OSError):
                os.rmdir(folder)


def _check_places(source: Path, out: Path, result: Path) -> None:
    """Is there an input, and does no part of it lie where the result goes? Raises Unreadable, CannotWrite."""
    try:
        mode = os.stat(source).st_mode
    except OSError as error:
        raise Unreadable(f"{shown(source)} {unreadable(error)}") from error
    if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
        raise Unreadable("{source} is neither a folder nor a file", source=shown(source))
    if os.path.dirname(os.path.abspath(source)) == os.path.abspath(source):
        raise CannotWrite(
            "{source} has no name for a result: choose a folder in it with -i", source=shown(source)
        )
    real_source, real_result = os.path.realpath(source), os.path.realpath(result)
    if os.path.realpath(out) == real_source:
        raise CannotWrite("{out} is the input: choose another output folder with -o", out=shown(out))
    if inside(real_source, real_result) is not None:
        raise CannotWrite(
            "the input is inside {result}, where the result goes: choose another -o", result=shown(result)
        )


def _check_free(result: Path, overwrite: bool) -> None:
    """Can ``result`` be put there? Raises ResultExists where not, CannotWrite for a name that is too long."""
    longest = 255
    if sys.platform != "win32":
        with suppress(OSError, ValueError):
            longest = os.pathconf(result.parent, "PC_NAME_MAX")
    length = len(os.fsencode(result.name))
    if length > longest:
        raise CannotWrite(
            "{name}, the name of the result, has {length} bytes where {longest} are the "
            "most: rename the input",
            name=shown(result.name),
            length=length,
            longest=longest,
        )
    try:
        mode = os.lstat(result).st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise cannot_write(error, result) from error
    if not stat.S_ISDIR(mode):
        raise ResultExists(
            "{result} exists and is not a folder: move it away or choose another -o", result=shown(result)
        )
    if not overwrite:
        raise ResultExists(
            "{result} exists: replace it with --overwrite or choose another -o", result=shown(result)
        )
    try:
        names = os.listdir(result)
        ours = not names or os.path.isfile(result / SUMMARY) or set(names).issuperset(_OF_ANALYSIS)
    except OSError as error:
        raise cannot_write(error, result) from error
    if not ours:
        wanted = SUMMARY if result.name.endswith(SUFFIX) else _OF_ANALYSIS[0]
        said = N_("{result} has no {wanted}, so it is not an earlier result: move it away")
        raise ResultExists(said, result=shown(result), wanted=wanted)


def _make_folder(folder: Path) -> None:
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise cannot_write(error, folder) from error


def _finish(tree: OutputTree, staging: Staging, overwrite: bool) -> None:
    try:
        is_folder = os.path.isdir(tree.source)
        if is_folder:
            _set_folder_modes(tree)
        _check_free(tree.result, overwrite)  # something may have been put there meanwhile
        _put_in_place(tree, staging)
        if is_folder:
            set_mode(tree.result, os.stat(tree.source).st_mode)
    except OSError as error:
        raise cannot_write(error, tree.result) from error


def _put_in_place(tree: OutputTree, staging: Staging) -> None:
    try:
        mode = os.stat(tree.result).st_mode
    except FileNotFoundError:
        os.rename(tree.building, tree.result)
        return
    try:
        if mode & stat.S_IRWXU != stat.S_IRWXU:  # else it could not be moved into another folder
            os.chmod(tree.result, stat.S_IRWXU)
        os.rename(tree.result, staging.old)
        os.rename(tree.building, tree.result)
    except BaseException:
        if not os.path.lexists(tree.result):
            os.rename(staging.old, tree.result)
        if not os.path.lexists(staging.old):
            set_mode(tree.result, mode)
        raise


def _set_folder_modes(tree: OutputTree) -> None:
    """Give the folders the modes of the input's, the innermost first: a read-only one is done by then."""
    names, waiting = [], [""]
    while waiting:
        parent = waiting.pop()
        with os.scandir(os.path.join(tree.building, parent)) as items:
            found = [os.path.join(parent, item.name) for item in items if item.is_dir(follow_symlinks=False)]
        names += found
        waiting += found
    for name in reversed(names):
        try:
            mode = os.lstat(os.path.join(tree.source, name)).st_mode
        except OSError:  # a folder of ours
            continue
        set_mode(os.path.join(tree.building, name), mode)
