"""A file's new content, in place and at once."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Optional

from migrator.files.errors import CannotWrite, reason, shown
from migrator.language import _


def replace_file(file: Path, data: bytes, within: Optional[Path] = None) -> None:
    """Put ``data`` in the place of a file at once, with the old one's mode. Raises CannotWrite.

    A file that may not be written is left alone, although its folder would allow to replace it.
    A symbolic link stays, and the file that it leads to is replaced, if that lies below ``within``, the
    link's own folder without it: what leads elsewhere may be anybody's. What is no plain file, such as
    ``/dev/null`` or a named pipe, is never replaced: it is written to.
    """
    import tempfile  # it imports much, and few runs write

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
        handle, temporary = tempfile.mkstemp(prefix=".npumigrate-", dir=place.parent)
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        os.chmod(temporary, stat.S_IMODE(mode))
        os.replace(temporary, place)
    except BaseException as error:
        if temporary:
            with suppress(OSError):
                os.unlink(temporary)
        if not isinstance(error, OSError):  # Ctrl-C
            raise
        raise CannotWrite(
            _("{file} cannot be written: {error}", file=shown(file), error=reason(error))
        ) from error


def refuse_link(file: Path, folder: Path) -> None:
    """Raise CannotWrite for a link that leads out of a folder, but for the system's, such as /dev/stdout."""
    if not os.path.islink(file) or os.path.abspath(file).startswith(("/dev/", "/proc/")):
        return
    target = os.path.realpath(file)
    if not target.startswith(os.path.join(os.path.realpath(folder), "")):
        raise CannotWrite(
            _("{file} is a link to {target}: name that file", file=shown(file), target=shown(target))
        )
