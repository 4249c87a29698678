"""A file's new content, in place and at once."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from migrator.sources.errors import cannot_write


def replace_file(file: Path, data: bytes) -> None:
    """Put ``data`` in the place of a file at once, with the old one's mode. Raises CannotWrite.

    A symbolic link stays, and the file that it leads to is replaced.
    """
    import tempfile  # it imports much, and few runs write

    place = Path(os.path.realpath(file))
    temporary = ""
    try:
        try:
            mode = place.stat().st_mode & 0o7777
        except FileNotFoundError:
            mode = 0o644
        handle, temporary = tempfile.mkstemp(prefix=".npumigrate-", dir=place.parent)
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        os.chmod(temporary, mode)
        os.replace(temporary, place)
    except OSError as error:
        if temporary:
            with suppress(OSError):
                os.unlink(temporary)
        raise cannot_write(error, file) from error
