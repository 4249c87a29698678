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
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from migrator.files.discover import Entry
from migrator.files.errors import CannotWrite, ResultExists, Unreadable, cannot_write, shown, unreadable
from migrator.files.naming import SUFFIX, inside, result_folder
from migrator.files.replacing import put_in_place, set_mode, staged
from migrator.language import N_, _
from migrator.light import Frozen

# These files show that a folder is an earlier result, which --overwrite may replace.
SUMMARY = "migration_report/summary.json"
_OF_ANALYSIS = ("summary.json", "npumigrate.log")

# Windows only has O_BINARY, and none of the others.
_COMMON = getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _COMMON
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | _COMMON
_CHUNK = 1 << 20


class OutputTree(Frozen):
    """``source`` is the input, ``result`` the place of its migrated form, ``building`` the folder that
    becomes the result."""

    source: Path
    result: Path
    building: Path


@contextmanager
def output_tree(
    source: Path, out: Path, overwrite: bool = False, suffix: str = SUFFIX
) -> Iterator[OutputTree]:
    """Prepare ``out/<name><suffix>``; put it in place when the block ends without an exception.

    ``overwrite`` replaces an empty folder or an earlier result. Leftovers of runs
    that were killed are cleared; a result that such a run had set aside comes back.

    Raises Unreadable where there is no input, ResultExists where something lies at the result's place,
    CannotWrite where nothing can be written there or input and output are one another or the input lies in
    the result. An interrupt that comes after the rename leaves the new result in place.
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
        with staged(result, lambda: _check_free(result, overwrite)) as staging:
            tree = OutputTree(source, result, staging / "new")
            _make_folder(tree.building)
            yield tree
            try:
                is_folder = os.path.isdir(source)
                if is_folder:
                    _set_folder_modes(tree)
                _check_free(result, overwrite)  # something may have been put there meanwhile
                put_in_place(staging, result)
                if is_folder:
                    set_mode(result, os.stat(source).st_mode)
            except OSError as error:
                raise cannot_write(error, result) from error
    finally:
        for folder in missing:  # takes back what was made and stayed empty: nothing after a success
            with suppress(OSError):
                os.rmdir(folder)


def _check_places(source: Path, out: Path, result: Path) -> None:
    """Is there an input, and does no part of it lie where the result goes? Raises Unreadable, CannotWrite."""
    try:
        mode = os.stat(source).st_mode
    except OSError as error:
        raise Unreadable(f"{shown(source)}: {unreadable(error)}") from error
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
            "the input is inside {result}, the output folder: choose another -o", result=shown(result)
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
            "{name}, the name of the result, has {length} bytes; the limit is {longest}: rename the input",
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
        except OSError:  # a folder that this run made
            continue
        set_mode(os.path.join(tree.building, name), mode)


def copy(tree: OutputTree, entry: Entry) -> str:
    """Take ``entry`` over as it is. Gives the line that the user should see about it, often empty.

    Raises Unreadable for a file that cannot be read (go on without it), CannotWrite.
    """
    if entry.kind == "folder":
        path = os.path.join(tree.building, entry.name)
        try:
            os.mkdir(path)
        except OSError as error:
            if not os.path.isdir(path) or os.path.islink(path):
                raise cannot_write(error, tree.result / entry.name) from error
    elif entry.kind == "link":
        return add_link(tree, entry)
    elif entry.kind in ("python", "notebook", "text", "file"):
        _copy_file(tree, entry)
    return entry.reason


def write(tree: OutputTree, entry: Entry, data: bytes) -> None:
    """Write the file ``entry`` with ``data`` in place of its own bytes, and with its mode.

    Raises Unreadable where it is gone, CannotWrite.
    """
    try:
        mode = os.stat(entry.path).st_mode
    except OSError as error:
        raise unreadable(error) from error
    _write(tree, entry.name, mode, [data])


def add(tree: OutputTree, name: str, data: bytes, mode: int = 0o644, replace: bool = False) -> None:
    """Write a file of our own: a report, a launcher.

    Raises CannotWrite where the input has something of that name (a file is replaced with ``replace``) or a
    symbolic link on the way to it, which could lead out of the result.
    """
    path = os.path.join(tree.building, name)
    folder = os.path.dirname(name)
    while folder:
        if os.path.islink(os.path.join(tree.building, folder)):
            said = N_(
                "{folder} is a symbolic link in the input, and {name} has to be written there: rename it"
            )
            raise CannotWrite(said, folder=shown(folder), name=shown(name))
        folder = os.path.dirname(folder)
    if replace and (os.path.isfile(path) or os.path.islink(path)):
        os.unlink(path)
    _write(tree, name, mode, [data])


def add_link(tree: OutputTree, entry: Entry) -> str:
    """Make the symbolic link ``entry`` again. Gives a line about it, empty where there is nothing to say.

    A relative link that stays inside the input keeps its text. Any other link into it is made relative,
    so that the result does not run the input's files. Any other link out of it is made to lead to the
    same place as before. Raises Unreadable and CannotWrite.
    """
    try:
        text = os.readlink(entry.path)
    except OSError as error:
        raise unreadable(error) from error
    new, leads_inside = _link_text(text, entry, tree)
    place = os.path.join(tree.building, entry.name)
    try:
        os.symlink(new, place, target_is_directory=os.path.isdir(entry.path))
    except OSError as error:
        raise cannot_write(error, tree.result / entry.name) from error
    if not leads_inside:
        return _("link to {text} outside the input: its target is not migrated", text=shown(text))
    if not os.path.exists(entry.path):
        return _("link to {text}, which is broken", text=shown(text))
    if new != text:
        return _("link to {text} now points to the migrated copy", text=shown(text))
    return ""


def _link_text(text: str, entry: Entry, tree: OutputTree) -> tuple[str, bool]:
    """The text in the result of a link with ``text``; does it lead into the input? Nothing has to exist."""
    folder = os.path.dirname(entry.name)
    if not os.path.isabs(text):
        way = os.path.normpath(os.path.join(folder, text))
        if way != os.pardir and not way.startswith(os.path.join(os.pardir, "")):
            return text, True
    # Only the way to the target is resolved: the target may be a link too, and is copied as one.
    way, last = os.path.split(os.path.join(os.path.realpath(entry.path.parent), text))
    if last in ("", os.curdir, os.pardir):
        way, last = os.path.split(os.path.realpath(os.path.join(way, last)))
    target = os.path.join(os.path.realpath(way), last)
    into = inside(target, os.path.realpath(tree.source))
    if into is not None:
        return os.path.relpath(into, folder or os.curdir), True
    same = os.path.normpath(os.path.join(os.path.realpath(tree.result), folder, text)) == target
    return (text if same or os.path.isabs(text) else target), False


def _copy_file(tree: OutputTree, entry: Entry) -> None:
    try:
        source = os.open(entry.path, _READ)
    except OSError as error:
        raise unreadable(error) from error
    try:
        mode = os.fstat(source).st_mode
        if not stat.S_ISREG(mode):
            raise Unreadable("cannot be read: it is no longer a file")

        def chunk() -> bytes:
            try:
                return os.read(source, _CHUNK)
            except OSError as error:
                raise unreadable(error) from error

        _write(tree, entry.name, mode, iter(chunk, b""))
    except Unreadable:
        with suppress(OSError):
            os.unlink(os.path.join(tree.building, entry.name))  # half a file in a result would be a lie
        raise
    finally:
        os.close(source)


def _write(tree: OutputTree, name: str, mode: int, chunks: Iterable[bytes]) -> None:
    """Make a new file of the result. Every OSError is taken for one of writing."""
    path = os.path.join(tree.building, name)
    try:
        try:
            target = os.open(path, _CREATE, 0o600)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            target = os.open(path, _CREATE, 0o600)
        try:
            for data in chunks:
                written = os.write(target, data)
                while written < len(data):  # a nearly full disk takes a part before it refuses
                    written += os.write(target, memoryview(data)[written:])
        finally:
            os.close(target)
        # A copy may have another owner than the input: it must not run as that one.
        set_mode(path, mode & ~(stat.S_ISUID | stat.S_ISGID))
    except OSError as error:
        raise cannot_write(error, tree.result / name) from error
