"""A file's new content, in place and at once."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Optional

from migrator.files.errors import CannotWrite, reason, shown


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
    import zlib

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
