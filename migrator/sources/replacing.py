"""A file's new content, in place and at once."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from migrator.sources.errors import cannot_write


def replace_file(file: Path, data: bytes) -> None:
    """Put ``data`` in the place of a file at once, with the old one's mode. Raises CannotWrite.

    A symbolic link stays, and the file that it leads to is replaced. What is no plain
    file, such as ``/dev/null`` or a named pipe, is never replaced: it is written to.
    """
    import tempfile  # it imports much, and few runs write

    place = Path(os.path.realpath(file))
    temporary = ""
    try:
        try:
            mode = place.stat().st_mode
        except FileNotFoundError:
            mode = stat.S_IFREG | 0o644
        if not stat.S_ISREG(mode):
            with open(place, "wb") as special:
                special.write(data)
            return
        handle, temporary = tempfile.mkstemp(prefix=".npumigrate-", dir=place.parent)
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        os.chmod(temporary, stat.S_IMODE(mode))
        os.replace(temporary, place)
    except OSError as error:
        if temporary:
            with suppress(OSError):
                os.unlink(temporary)
        raise cannot_write(error, file) from error
