"""The logs that are read: which files those of a run are, whose they are, and their lines."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Callable, NamedTuple

_BLOCK = 1 << 18
_LONGEST = 1 << 16  # of a line: what is longer is read in parts
_ANSI = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_SUFFIXES = ("", ".log", ".txt", ".out", ".err")
_RANK = re.compile(r"(?:\battempt_\d+/|(?:\b|_)(?:rank|worker)[_-]?)(\d+)(?=\D|$)")
_PLOG = re.compile(r"\b(?:plog|device-\d+)[-_](\d+)_(\d{14})\d*\.log$")
ERROR_FILE = "error.json"  # what torchrun's record decorator writes
# Processes of one run start within so many minutes; older ones in a folder of plogs are of earlier runs.
_TOGETHER = 10


class Log(NamedTuple):
    """One log: what it is called, and its rank and its process where the name says them, else empty."""

    name: str
    path: str  # empty for the standard input
    rank: str = ""
    process: str = ""


def log_at(path: str) -> Log:
    """The log in a file, by its path; ``-`` is the standard input."""
    if path == "-":
        return Log("-", "")
    process = _PLOG.search(path)
    ranks = _RANK.findall("/".join(Path(path).parts[-4:])) if not process else []
    return Log(path, path, ranks[-1] if ranks else "", process[1] if process else "")


def logs_of_run(folder: str) -> list[Log]:
    """The logs in a folder of torchrun, CANN or a launcher, by ranks; of CANN's those of the newest run."""
    files = (path for path in sorted(Path(folder).rglob("*")) if path.is_file())
    found = [str(path) for path in files if path.suffix.lower() in _SUFFIXES or path.name == ERROR_FILE]
    started = {path: _minutes(match[2]) for path in found if (match := _PLOG.search(path))}
    newest = max(started.values(), default=0)
    fresh = [path for path in found if started.get(path, newest) >= newest - _TOGETHER]
    return sorted(map(log_at, fresh), key=lambda log: (not log.rank, int(log.rank or 0)))


def _minutes(stamp: str) -> int:
    month, day, hour, minute = (int(stamp[at : at + 2]) for at in (4, 6, 8, 10))
    return (((int(stamp[:4]) * 12 + month) * 31 + day) * 24 + hour) * 60 + minute


def lines(stream: BinaryIO, read: Callable[[int], None]) -> Iterator[tuple[int, bytes]]:
    """The lines of a log with their numbers, without colours and NULs; what a ``\\r`` ends is one, too.

    ``read`` gets the number of bytes that were read.
    """
    number, rest = 1, b""
    while block := stream.read1(_BLOCK) if hasattr(stream, "read1") else stream.read(_BLOCK):
        read(len(block))
        *whole, rest = (rest + block).split(b"\n")
        for line in whole:
            yield from ((number, part) for part in _parts(line))
            number += 1
        if len(rest) > _LONGEST:
            yield from ((number, part) for part in _parts(rest))
            rest = b""
    yield from ((number, part) for part in _parts(rest))


def lines_of_error_file(content: bytes) -> Iterator[tuple[int, bytes]]:
    """What a process told torchrun of its exception in a file of JSON, as lines of a log."""
    with suppress(ValueError, TypeError, KeyError):
        more = json.loads(content)["message"]["extraInfo"]
        stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(int(more["timestamp"])))
        yield from ((1, line.encode()) for line in (stamp, *str(more["py_callstack"]).splitlines()))


def _parts(line: bytes) -> Iterable[bytes]:
    if b"\0" in line:
        line = line.replace(b"\0", b"")
    if b"\x1b" in line:
        line = _ANSI.sub(b"", line)
    return line.split(b"\r") if b"\r" in line[:-1] else (line.rstrip(b"\r"),)


def decoded(line: bytes) -> str:
    """A line as text: UTF-8, else the Chinese encoding, else with signs for what cannot be read."""
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return line.decode("gb18030", "replace")
