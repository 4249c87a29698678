"""Everything that lies in a project, in one order."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Callable, Literal, TypeVar

from migrator.files.document import PYTHON, START, file_type, is_notebook, tells_type, type_of_start
from migrator.files.errors import SourceError, Unreadable, shown, unreadable
from migrator.files.naming import inside, is_equivalents
from migrator.files.patterns import Matcher, matcher
from migrator.files.replacing import staging_prefix
from migrator.language import _
from migrator.light import Frozen

Place = TypeVar("Place")
Seen = TypeVar("Seen")
Kind = Literal["folder", "python", "notebook", "text", "file", "link", "special", "unreadable", "skipped"]

LARGEST_TEXT = 1 << 20  # bytes of a script or a configuration

_INTERPRETER = re.compile(rb"pythonw?[0-9.]*")

# What tools make again when they next run. Everything else is the user's, .git included.
_CACHES = frozenset({"__pycache__", ".mypy_cache", ".npumigrate_cache", ".pytest_cache", ".ruff_cache"})
# A folder that holds one of these is a virtual or a conda environment, whatever its name.
_ENVIRONMENT = ("pyvenv.cfg", "conda-meta")
# Version control keeps scripts (hooks) and files without extension by the thousand, and Jupyter copies of
# notebooks: none is the project's.
_KEPT = frozenset({".git", ".hg", ".svn", ".bzr", ".ipynb_checkpoints"})


class Entry(Frozen):
    """One thing in the input. A ``text`` is not Python and of a known type: a shell script, a configuration.

    ``name`` is relative to the input, with ``/``; ``path`` opens it. ``excluded``
    things are copied, not migrated. ``reason`` is the line for the user where
    the kind is special, unreadable or skipped: such things are not copied.
    """

    kind: Kind
    name: str
    path: Path
    excluded: bool = False
    reason: str = ""

    @property
    def holds_python(self) -> bool:
        """Whether it is Python, or a notebook that may hold some."""
        return self.kind in ("python", "notebook")

    @property
    def checked(self) -> bool:
        """Whether rules look at it: all that is Python, and texts of other types."""
        return self.holds_python or self.kind == "text"


def discover(root: Path, exclude: Sequence[str] = (), avoid: Path | None = None) -> Iterator[Entry]:
    """Everything under ``root``: by name, a folder before what it holds, links not followed.

    A file as ``root`` is the only entry. Python is what ends in .py, .pyi or .pyw, or has no extension and a
    ``#!`` line that names Python; a notebook is what ends in .ipynb. Everything is given except the contents
    of tool caches (__pycache__, .mypy_cache, .pytest_cache, .ruff_cache), of virtual and conda environments
    and of the folder ``avoid`` (the result), which are ``skipped``. Files of .git, .hg, .svn, .bzr and
    .ipynb_checkpoints are neither. ``exclude`` holds patterns as ``patterns.matcher`` reads them; what an
    excluded folder holds is excluded, as is the package of functions of an earlier migration.

    Holds the names of the folders on the way down, never those of the tree.
    Raises Unreadable where ``root`` cannot be read, SourceError for a wrong pattern.
    """
    try:
        excluded = matcher(exclude)
    except SourceError as error:
        raise SourceError("--exclude {error}", error=error) from error
    try:
        mode = os.stat(root).st_mode
        if not stat.S_ISDIR(mode):
            name = os.path.basename(os.path.abspath(root))
            if not stat.S_ISREG(mode):
                return iter((Entry("special", name, root, reason=_special(mode)),))
            return iter((Entry(kind_of_file(name, os.fspath(root)), name, root, excluded(name, False)),))
        top = listing(os.fspath(root))
    except OSError as error:
        raise Unreadable(f"{shown(root)}: {unreadable(error)}") from error
    result = inside(os.path.realpath(avoid), os.path.realpath(root)) if avoid else None
    avoided = "" if result in (None, ".") else str(result)
    return walk([(item, ("", False, False)) for item in top], lambda place: _look(place, excluded, avoided))


_Inside = tuple[str, bool, bool]  # of a folder: what its names begin with, is it excluded, of version control
_Place = tuple[os.DirEntry[str], _Inside]


def _look(place: _Place, excluded: Matcher, avoided: str) -> tuple[Entry, list[_Place]]:
    """The entry of a thing, and what lies in it."""
    item, (prefix, inherited, versions) = place
    name, path = prefix + item.name, Path(item.path)
    try:
        if item.is_symlink():
            return Entry("link", name, path, inherited or excluded(name, False)), []
        if item.is_dir(follow_symlinks=False):
            why = _why_skipped(item.name, name, avoided)
            found = [] if why else listing(item.path)
            if any(child.name in _ENVIRONMENT for child in found):
                why = _("virtual environment: not copied")
            if why:
                return Entry("skipped", name, path, reason=why), []
            out = inherited or excluded(name, True) or is_equivalents(item.path)
            folder = (name + "/", out, versions or item.name in _KEPT)
            return Entry("folder", name, path, out), [(child, folder) for child in found]
        if item.is_file(follow_symlinks=False):
            kind = "file" if versions else kind_of_file(item.name, item.path)
            return Entry(kind, name, path, inherited or excluded(name, False)), []
        return Entry("special", name, path, reason=_special(item.stat(follow_symlinks=False).st_mode)), []
    except OSError as error:
        return Entry("unreadable", name, path, reason=_("{error}: not copied", error=unreadable(error))), []


def walk(top: Sequence[Place], look: Callable[[Place], tuple[Seen, Sequence[Place]]]) -> Iterator[Seen]:
    """What is seen at each place: ``look`` gives that, and the places inside, which come next, in its order.

    Holds the places on the way down, never those of the tree; and a tree may be deeper than Python's
    recursion limit.
    """
    waiting = [*reversed(top)]
    while waiting:
        seen, inside = look(waiting.pop())
        yield seen
        waiting.extend(reversed(inside))


def listing(folder: str) -> list[os.DirEntry[str]]:
    """What a folder holds, by name. Raises OSError."""
    with os.scandir(folder) as items:
        return sorted(items, key=lambda item: item.name)


def kind_of_file(base: str, path: str) -> Kind:
    """What the file ``path``, called ``base``, is: by its name, or else by its first line."""
    if is_notebook(base):
        return "notebook"
    if file_type(base):
        return "text" if os.path.getsize(path) <= LARGEST_TEXT else "file"  # what is larger is data
    start = b""
    if tells_type(base):
        with suppress(OSError), open(path, "rb", buffering=0) as file:
            start = file.read(START)  # whoever copies it meets the same error and reports it
    if base.lower().endswith(PYTHON) or ("." not in base and names_python(start)):
        return "python"
    return "text" if type_of_start(path, start) else "file"


def _why_skipped(base: str, name: str, avoided: str) -> str:
    if base in _CACHES:
        return _("tool cache: not copied")
    if avoided:
        parent, _slash, last = avoided.rpartition("/")
        staging = f"{parent}/{staging_prefix(last)}" if parent else staging_prefix(last)
        if name == avoided or name.startswith(staging):
            return _("output folder: not copied")
    return ""


def names_python(start: bytes) -> bool:
    """Is the first line of a file that starts with ``start`` a ``#!`` line for Python?"""
    if not start.startswith(b"#!"):
        return False
    words = start[2:].split(b"\n", 1)[0].split()
    if words and words[0].endswith(b"/env"):
        words = [word for word in words[1:] if not word.startswith(b"-") and b"=" not in word]
    return bool(words) and _INTERPRETER.fullmatch(words[0].rpartition(b"/")[2]) is not None


def _special(mode: int) -> str:
    what = {stat.S_IFIFO: _("named pipe"), stat.S_IFSOCK: "socket"}.get(stat.S_IFMT(mode), "device")
    return _("{what}: not copied", what=what)
