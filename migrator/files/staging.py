"""The folder beside a result in which one run builds it.

Its name starts with ``.<name>_msft.partial-``. It holds ``new``, the result to be,
and while that is put in place ``old``, the result it replaces. A lock on it, which
ends with its process, tells the folder of a living run from a leftover; process
numbers alone would not, between containers that share a disk.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from dataclasses import dataclass
from pathlib import Path

from migrator.files.errors import cannot_write
from migrator.files.naming import staging_prefix


@dataclass(frozen=True)
class Staging:
    """``lock`` is the open file that holds the lock, None where the file system has no locks."""

    folder: Path
    lock: int | None

    @property
    def old(self) -> Path:
        """Where the result that is being replaced waits."""
        return self.folder / "old"


def claim(result: Path) -> Staging:
    """Make the staging folder of this run. Raises CannotWrite."""
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
            return Staging(folder, lock)
        _close(lock)


def recover(result: Path) -> None:
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
            discard(Staging(folder, lock), result)


def _is_ours(folder: Path) -> bool:
    """Whether a folder is this user's: in one that all write to, another's may be a trap."""
    try:
        return sys.platform == "win32" or os.lstat(folder).st_uid == os.geteuid()
    except OSError:
        return False


def discard(staging: Staging, result: Path) -> None:
    """Remove the staging folder. A result that it replaced and that has no successor goes back first."""
    try:
        if os.path.lexists(staging.old) and not os.path.lexists(result):
            os.rename(staging.old, result)
        remove(staging.folder)
    except OSError:
        pass  # the next run tries again
    finally:
        _close(staging.lock)


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
