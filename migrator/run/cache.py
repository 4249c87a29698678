"""What earlier runs found, by the content of each file and everything else that decides it.

One SQLite file: it bears crashes and several runs at once. Its name holds a digest of npumigrate's own code
and data, so another version never sees it. Whatever goes wrong with it, the run goes on without it.
"""

from __future__ import annotations

import json
import os
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

from migrator import __version__
from migrator.api_support.tables import in_force
from migrator.data_folders import data_folder
from migrator.field_types import from_json, to_json
from migrator.language import language

try:  # hashlib loads OpenSSL, which takes longer than all that is digested in a hook
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

if TYPE_CHECKING:
    from sqlite3 import Connection

FOLDER = ".npumigrate_cache"
_FORGET_AFTER = 7 * 24 * 3600  # seconds without use, for the caches of other versions
_MOST_ROWS = 200_000
_MARK = 32  # characters
_TAG = "Signature: 8a477f597d28d172789f06886806bc55\n# This is a cache of npumigrate; it can be deleted.\n"


def digest(*parts: bytes) -> bytes:
    """A key for some parts, which is another one if any of them changes."""
    measured = [piece for part in parts for piece in (len(part).to_bytes(8, "little"), part)]
    return blake2b(b"".join(measured), digest_size=16).digest()


def tool_digest() -> str:
    """A digest of what npumigrate is: version, Python, language, and the state of its code and data."""
    try:
        tables = in_force()
    except FileNotFoundError:  # reported where the tables are read
        tables = data_folder("api_db")
    states = [*_states(Path(__file__).parent.parent), *_states(data_folder("rules")), *_states(tables)]
    spoken = language().encode()
    return digest(__version__.encode(), sys.version.encode(), spoken, *sorted(states)).hex()


def _states(folder: Path) -> Iterator[bytes]:
    """Path, size and time of the last change of each file with code, rules or tables."""
    waiting = [str(folder)]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.name.endswith((".py", ".yaml", ".csv")):
                    with suppress(FileNotFoundError):  # one that another process replaces just now
                        status = entry.stat()
                        yield os.fsencode(f"{entry.path} {status.st_size} {status.st_mtime_ns}")
                elif entry.name != "__pycache__" and entry.is_dir():
                    waiting.append(entry.path)


class Cache:
    """Values by their keys; a cache that cannot be opened holds nothing and takes nothing.

    Nor does one to which a link below ``root``, the project's folder, leads: who knows what lies there.
    """

    def __init__(self, folder: Optional[Path], tool: str, root: Optional[Path] = None) -> None:
        self._database: Optional[Connection] = None
        self._added: list[tuple[bytes, str]] = []
        if folder is not None:
            with suppress(Exception):  # no sqlite3, a read-only or full disk, a locked or broken file
                if not (root and _behind_link(folder, root)):
                    self._database = _opened(folder, tool)

    def get(self, key: bytes, kind: Any) -> Optional[Any]:
        """The value of a key, which is of a kind; None where there is none.

        Nor is one taken that is not as it was put there, or has not the form of this kind of value: others
        may write into the cache, and a row that fails would fail every run.
        """
        if self._database is None:
            return None
        try:
            row = self._database.execute("SELECT value FROM entry WHERE key = ?", (key,)).fetchone()
        except Exception:
            self._close()
            return None
        with suppress(ValueError, TypeError, AttributeError, RecursionError):
            mark, text = row[0][:_MARK], row[0][_MARK:]
            return from_json(kind, json.loads(text)) if mark == _mark(key, text) else None
        return None

    def put(self, key: bytes, value: Any) -> None:
        """Remember a value or a record, as ``to_json`` has it; ``flush`` writes it."""
        if self._database is not None:
            text = json.dumps(to_json(value), separators=(",", ":"))
            self._added.append((key, _mark(key, text) + text))

    def flush(self) -> None:
        """Write what was put, all of it or nothing."""
        if self._database is None or not self._added:
            return
        try:
            with self._database:
                self._database.executemany("INSERT OR REPLACE INTO entry VALUES (?, ?)", self._added)
                self._database.execute(
                    "DELETE FROM entry WHERE rowid <= (SELECT max(rowid) FROM entry) - ?", (_MOST_ROWS,)
                )
        except Exception:
            self._close()
        self._added = []

    def _close(self) -> None:
        with suppress(Exception):
            if self._database is not None:
                self._database.close()
        self._database = None


def _mark(key: bytes, text: str) -> str:
    """What stands before a value to show that it is as it was put there."""
    return digest(key, text.encode("ascii")).hex()


def _opened(folder: Path, tool: str) -> Connection:
    folder = _own(folder)
    file = folder / f"lint-{tool[:20]}.sqlite"
    if os.path.islink(folder) or (os.path.lexists(file) and not stat.S_ISREG(os.lstat(file).st_mode)):
        raise OSError(f"{file} is no file of ours")
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in ((".gitignore", "*\n"), ("CACHEDIR.TAG", _TAG)):
            with suppress(FileExistsError), open(folder / name, "x") as mark:  # "x" follows no link
                mark.write(text)
        for old in folder.glob("lint-*.sqlite"):
            with suppress(OSError):
                if time.time() - old.stat().st_mtime > _FORGET_AFTER:
                    old.unlink()
    try:  # sqlite3's own part loads datetime, which takes a fiftieth of a hook
        sqlite: Any = import_module("_sqlite3")
    except ImportError:
        sqlite = import_module("sqlite3")
    try:
        return _connected(sqlite, file)
    except sqlite.DatabaseError:
        file.unlink()  # not a database: somebody else wrote there, or the disk did
        return _connected(sqlite, file)


def _behind_link(folder: Path, root: Path) -> bool:
    below = os.path.relpath(folder, root)
    if below.split(os.sep)[0] == os.pardir:  # not the project's
        return False
    return os.path.realpath(folder) != os.path.normpath(os.path.join(os.path.realpath(root), below))


def _own(folder: Path) -> Path:
    """The cache's folder: where there are other things in ``folder``, one of its own in there."""
    if folder.name == FOLDER or not folder.is_dir():
        return folder
    tag = folder / "CACHEDIR.TAG"
    if tag.is_file() and tag.read_text(errors="replace") == _TAG:
        return folder
    return folder / FOLDER if any(os.scandir(folder)) else folder


def _connected(sqlite: Any, file: Path) -> Connection:
    connection: Connection = sqlite.connect(file, timeout=5)
    try:
        connection.execute("PRAGMA synchronous = OFF")  # a lost or broken cache is made again
        connection.execute("CREATE TABLE IF NOT EXISTS entry (key BLOB PRIMARY KEY, value TEXT NOT NULL)")
        connection.execute("SELECT value FROM entry LIMIT 1").fetchone()
    except sqlite.Error:
        connection.close()
        raise
    return connection
