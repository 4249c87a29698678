"""What can go wrong with files, each as one line for the user."""

from __future__ import annotations

import errno
import os
import re

from migrator.language import N_, UserError, _

_CONTROLS = "[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]|\r(?!\n)"


class SourceError(UserError):
    """The base of this package's errors."""


class Unreadable(SourceError):  # noqa: N818
    """One file or folder cannot be read. The others can: report it and go on."""


class CannotWrite(SourceError):  # noqa: N818
    """The result cannot be written. The run ends."""


class ResultExists(CannotWrite):
    """Something lies where the result belongs, and may not be replaced."""


def shown(name: str | os.PathLike[str]) -> str:
    """``name`` on one line that every UTF-8 terminal and report can hold.

    Control characters and bytes that are not UTF-8 (which Python keeps as lone
    surrogates, and refuses to print) become escapes such as ``\\n`` and ``\\xb0``.
    """
    text = os.fspath(name)
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escape(char) for char in text)


def harmless(text: str) -> str:
    """Lines of a file without what would control a terminal or turn the direction of the text.

    Such characters become escapes such as ``\\x1b``. Tabs, form feeds and the ends of lines stay.
    """
    return re.sub(_CONTROLS, lambda found: _escape(found.group()), text)


def _escape(char: str) -> str:
    if "\udc80" <= char <= "\udcff":
        return f"\\x{ord(char) - 0xDC00:02x}"
    return char.encode("unicode_escape").decode("ascii")


# What the system refuses often; rare reasons are in its own English words.
_REASONS = {
    errno.ENOENT: N_("no such file or folder"),
    errno.EACCES: N_("permission denied"),
    errno.EISDIR: N_("it is a folder"),
    errno.ENOTDIR: N_("not a folder"),
    errno.ENOSPC: N_("no space left on device"),
}


def reason(error: OSError) -> str:
    """What the system refused, such as ``permission denied``: its own words where it happens rarely."""
    said = _REASONS.get(error.errno or 0)
    return _(said) if said else (error.strerror or str(error) or type(error).__name__).lower()


def unreadable(error: OSError) -> Unreadable:
    """The Unreadable that stands for ``error``; a path and a colon go before it."""
    why = "{error}" if error.errno == errno.ENOENT else N_("cannot be read: {error}")
    return Unreadable(why, error=reason(error))


_ELSEWHERE = N_("choose another output folder with -o")
_SPACE = N_("free some space or choose another output folder with -o")
_ADVICE = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), _SPACE),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR), _ELSEWHERE),
    errno.EFBIG: N_("raise the file size limit or choose another output folder with -o"),
    errno.EEXIST: N_("another file has that name or one that differs only in case"),
    errno.ENAMETOOLONG: N_("choose an output folder with a shorter path with -o"),
}


def cannot_write(error: OSError, place: str | os.PathLike[str]) -> CannotWrite:
    """The CannotWrite that stands for ``error``, which happened while ``place`` was written."""
    line = _("{place} cannot be written: {error}", place=shown(place), error=reason(error))
    advice = _(_ADVICE.get(error.errno or 0, ""))
    return CannotWrite(f"{line}: {advice}" if advice else line)
