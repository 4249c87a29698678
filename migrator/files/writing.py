"""Into the result: files, copied or new, folders and links."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from migrator.files.discover import Entry
from migrator.files.errors import CannotWrite, Unreadable, cannot_write, shown, unreadable
from migrator.files.naming import inside
from migrator.language import N_, _

# Windows only has O_BINARY, and none of the others.
_COMMON = getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _COMMON
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | _COMMON
_CHUNK = 1 << 20


@dataclass(frozen=True)
class OutputTree:
    """``source`` is the input, ``result`` the place of its migrated form, ``building`` the folder that
    becomes the result."""

    source: Path
    result: Path
    building: Path


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

    Raises CannotWrite where the input has something of that name (a file is
    replaced with ``replace``) or a symbolic link on the way to it, which could
    lead out of the result.
    """
    path = os.path.join(tree.building, name)
    folder = os.path.dirname(name)
    while folder:
        if os.path.islink(os.path.join(tree.building, folder)):
            said = N_("{folder} is a link in the input, where {name} belongs: rename it")
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
        return _("link to {text}, outside the input: its target is not migrated", text=shown(text))
    if not os.path.exists(entry.path):
        return _("link to {text}, which cannot be reached", text=shown(text))
    if new != text:
        return _("link to {text} now leads to its migrated copy", text=shown(text))
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


def set_mode(path: str | Path, mode: int) -> None:
    """Give ``path`` the bits of ``mode``. Raises OSError, but not where the file system has none."""
    try:
        os.chmod(path, stat.S_IMODE(mode))
    except OSError as error:  # FAT and network file systems have no modes, and the content is what counts
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS):
            raise


def _copy_file(tree: OutputTree, entry: Entry) -> None:
    try:
        source = os.open(entry.path, _READ)
    except OSError as error:
        raise unreadable(error) from error
    try:
        mode = os.fstat(source).st_mode
        if not stat.S_ISREG(mode):
            raise Unreadable("cannot be read: it is no longer a file")
        _write(tree, entry.name, mode, iter(partial(_next, source), b""))
    except Unreadable:
        with suppress(OSError):
            os.unlink(os.path.join(tree.building, entry.name))  # half a file in a result would be a lie
        raise
    finally:
        os.close(source)


def _next(source: int) -> bytes:
    try:
        return os.read(source, _CHUNK)
    except OSError as error:
        raise unreadable(error) from error


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
