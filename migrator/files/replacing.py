"""What is put in place at once: a file's new content, and the folder that one run builds beside its result.

The folder's name starts with ``.<name>_msft.partial-``. It holds ``new``, the result to be, and while that is
put in place ``old``, the result it replaces. A lock on it, which ends with its process, tells the folder of a
living run from a leftover. No two folders ever have the same name: who holds a lock has locked the folder
that is there.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Callable, Optional

from migrator.files.errors import CannotWrite, cannot_write, reason, shown


def replace_file(file: Path, data: bytes, within: Optional[Path] = None) -> None:
    """Put ``data`` in the place of a file at once, with the old one's mode. Raises CannotWrite.

    A file that may not be written is left alone, although its folder would allow to replace it.
    A symbolic link stays, and the file that it leads to is replaced, if that lies below ``within``, the
    link's own folder without it: what leads elsewhere may be anybody's. What is no plain file, such as
    ``/dev/null`` or a named pipe, is never replaced: it is written to.
    """
    temporary = ""
    try:
        refuse_link(file, within or file.parent)
        try:
            mode = file.stat().st_mode
        except FileNotFoundError:
            mode = stat.S_IFREG | 0o644
        if not stat.S_ISREG(mode):
            with open(file, "wb") as special:  # under this name: where /dev/stdout is a pipe it has no other
                special.write(data)
            return
        place = Path(os.path.realpath(file))
        if os.path.exists(place) and not os.access(place, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        handle, temporary = _file_beside(place)
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            if os.name == "nt":  # where no open file can be renamed
                stream.close()
            os.chmod(temporary, stat.S_IMODE(mode))
            os.replace(temporary, place)  # while its lock is held: who opens it now must not have it
    except BaseException as error:
        if temporary:
            with suppress(OSError):
                os.unlink(temporary)
        if not isinstance(error, OSError):  # Ctrl-C
            raise
        raise CannotWrite("cannot write {file}: {error}", file=shown(file), error=reason(error)) from error


def _file_beside(place: Path) -> tuple[int, str]:
    """An empty file to write what is to take the place of another, and its name.

    It has the same name each time, so that what a killed run has left is taken again, and goes with it. Where
    another run is at it, or who knows what has its name, it gets a name of its own.
    """
    import tempfile  # it imports much, and few runs write

    name = place.with_name(f".npumigrate-{zlib.crc32(os.fsencode(place.name)):08x}")
    with suppress(ImportError, OSError):
        import fcntl

        handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            status = os.fstat(handle)
            is_ours = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and status.st_nlink == 1
            if is_ours and os.path.samestat(status, os.lstat(name)):
                os.truncate(handle, 0)
                return handle, str(name)
        os.close(handle)
    return tempfile.mkstemp(prefix=".npumigrate-", dir=place.parent)


def refuse_link(file: Path, folder: Path) -> None:
    """Raise CannotWrite for a link that leads out of a folder, but for the system's, such as /dev/stdout."""
    if not os.path.islink(file) or os.path.abspath(file).startswith(("/dev/", "/proc/")):
        return
    target = os.path.realpath(file)
    if not target.startswith(os.path.join(os.path.realpath(folder), "")):
        raise CannotWrite(
            "{file} is a symbolic link to {target}: name that file", file=shown(file), target=shown(target)
        )


# Room for what a staging folder's name has after its prefix.
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
    while True:
        folder = result.parent / f"{staging_prefix(result.name)}{os.urandom(8).hex()}"
        try:
            os.mkdir(folder, 0o700)
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
