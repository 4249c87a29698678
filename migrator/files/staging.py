"""The folder beside a result in which one run builds it.

Its name starts with ``.<name>_msft.partial-``. It holds ``new``, the result to be, and while that is put in
place ``old``, the result it replaces. A lock on it, which ends with its process, tells the folder of a living
run from a leftover; process numbers alone would not, between containers that share a disk.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Callable

from migrator.files.errors import cannot_write

# Room for "-<pid>-<number>" after the prefix of a staging folder's name.
_TAIL = 24
_LONGEST = 143  # bytes, as encrypted home folders allow; others allow 255


@contextmanager
def staged(result: Path, check: Callable[[], object] = lambda: None) -> Iterator[Path]:
    """The staging folder of this run, which goes when the block ends; ``put_in_place`` moves the result out.

    What killed runs have left is cleared before that, and then ``check`` is called. Raises CannotWrite.
    """
    _recover(result)
    check()
    folder, lock = _claim(result)
    try:
        yield folder
    finally:
        _discard(folder, lock, result)


def put_in_place(folder: Path, result: Path) -> None:
    """Make ``new`` of the staging folder the result; what lies there waits as ``old``. Raises OSError."""
    new, old = folder / "new", folder / "old"
    try:
        mode = os.stat(result).st_mode
    except FileNotFoundError:
        os.rename(new, result)
        return
    try:
        if mode & stat.S_IRWXU != stat.S_IRWXU:  # else it could not be moved into another folder
            os.chmod(result, stat.S_IRWXU)
        os.rename(result, old)
        os.rename(new, result)
    except BaseException:
        if not os.path.lexists(result):
            os.rename(old, result)
        if not os.path.lexists(old):
            set_mode(result, mode)
        raise


def set_mode(path: str | Path, mode: int) -> None:
    """Give ``path`` the bits of ``mode``. Raises OSError, but not where the file system has none."""
    try:
        os.chmod(path, stat.S_IMODE(mode))
    except OSError as error:  # FAT and network file systems have no modes, and the content is what counts
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS):
            raise


def staging_prefix(result_name: str) -> str:
    """How the folders beside a result are called in which runs build it: ``.<name>_msft.partial-``.

    A name too long for that is cut, and told from others by a checksum.
    """
    prefix = f".{result_name}.partial-"
    if len(os.fsencode(prefix)) + _TAIL <= _LONGEST:
        return prefix
    mark = f"~{zlib.crc32(os.fsencode(result_name)):08x}"
    kept = result_name
    while len(os.fsencode(f".{kept}{mark}.partial-")) + _TAIL > _LONGEST:
        kept = kept[:-1]  # characters, not bytes: half a character is no valid name everywhere
    return f".{kept}{mark}.partial-"


def _claim(result: Path) -> tuple[Path, int | None]:
    """Make the staging folder; the file that holds its lock, None where the file system has no locks."""
    number = 0
    while True:
        folder = result.parent / f"{staging_prefix(result.name)}{os.getpid()}{f'-{number}' if number else ''}"
        number += 1
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:  # of another container, whose processes have the same numbers
            continue
        except OSError as error:
            raise cannot_write(error, result) from error
        held, lock = _lock(folder)
        # Another run may have taken the folder for a leftover before it was locked.
        if not held and os.path.isdir(folder):
            return folder, lock
        _close(lock)


def _recover(result: Path) -> None:
    """Clear the staging folders that killed runs have left.

    One that was killed while it replaced the result gives back the old one. What
    cannot be cleared stays: it is in nobody's way.
    """
    prefix = staging_prefix(result.name)
    try:
        names = [name for name in os.listdir(result.parent) if name.startswith(prefix)]
    except OSError:
        return
    for name in names:
        folder = result.parent / name
        if folder.is_symlink() or not _is_ours(folder):
            continue
        _, lock = _lock(folder)
        if lock is not None:  # without a lock nobody knows whether its run lives
            _discard(folder, lock, result)


def _is_ours(folder: Path) -> bool:
    """Whether a folder is this user's: in one that all write to, another's may be a trap."""
    try:
        return sys.platform == "win32" or os.lstat(folder).st_uid == os.geteuid()
    except OSError:
        return False


def _discard(folder: Path, lock: int | None, result: Path) -> None:
    """Remove the staging folder. A result that it replaced and that has no successor goes back first."""
    try:
        if os.path.lexists(folder / "old") and not os.path.lexists(result):
            os.rename(folder / "old", result)
        remove(folder)
    except OSError:
        pass  # the next run tries again
    finally:
        _close(lock)


def remove(folder: Path) -> None:
    """Remove ``folder`` with all it holds, read-only folders too. Links are not followed.

    Unlike ``shutil.rmtree`` it goes to any depth on every Python version.
    """
    folders, waiting = [], [os.fspath(folder)]
    while waiting:
        current = waiting.pop()
        folders.append(current)
        if os.lstat(current).st_mode & stat.S_IRWXU != stat.S_IRWXU:
            os.chmod(current, stat.S_IRWXU)
        with os.scandir(current) as items:
            for item in items:
                if item.is_dir(follow_symlinks=False):
                    waiting.append(item.path)
                else:
                    os.unlink(item.path)
    for current in reversed(folders):
        os.rmdir(current)


def _lock(folder: Path) -> tuple[bool, int | None]:
    """Whether another process holds the lock, and our lock, None where there is none to be had."""
    if sys.platform == "win32":
        return False, None
    import fcntl

    try:
        lock = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False, None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        return error.errno in (errno.EWOULDBLOCK, errno.EACCES), None
    return False, lock


def _close(lock: int | None) -> None:
    if lock is not None:
        os.close(lock)
