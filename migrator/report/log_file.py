"""``npumigrate.log``: what the tool did, for a person who has to find out why; and what stands in for it."""

from __future__ import annotations

import logging
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import NamedTuple

from migrator import __version__
from migrator.findings.finding import Result
from migrator.language import _

LOG_NAME = "npumigrate.log"
_ONE_MEGABYTE = 1024 * 1024
_OLD_FILES = 9  # ten with the current one
# As run_reports in csv_tables.py writes it.
_INPUT = re.compile(r" INFO input (.+); (?:Settings\(|modes )")
_COMMAND = re.compile(r"^([\d-]+ [\d:]{5})\S* INFO command (.+)$(?:\n.* INFO commit (\w+)$)?", re.M)


@contextmanager
def log_to(folder: Path) -> Iterator[None]:
    """Write the log into ``folder`` while the context is open."""
    file = folder / LOG_NAME
    handler = RotatingFileHandler(file, "a", _ONE_MEGABYTE, _OLD_FILES, "utf-8", errors="backslashreplace")
    # A full disk is reported by those who write the result, not by the log.
    handler.handleError = lambda _record: None  # type: ignore[method-assign, assignment]
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    handler.setLevel(logging.INFO)
    logger = logging.getLogger("npumigrate")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        handler.close()


def inputs(folder: Path) -> list[Path]:
    """What the logged runs read, the last one first; empty where the folder has no log."""
    return [Path(path) for path in reversed(_INPUT.findall(_read(folder)))]


class LastRun(NamedTuple):
    """Date with time, command line, and the commit of the project: each empty where it is not known."""

    date: str = ""
    command: str = ""
    commit: str = ""


def last_run(folder: Path) -> LastRun:
    """The last run that was logged in a folder."""
    found = _COMMAND.findall(_read(folder))
    return LastRun(*found[-1]) if found else LastRun()


def _read(folder: Path) -> str:
    try:
        return (folder / LOG_NAME).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def log_trace(result: Result) -> None:
    """Note where an internal error came from, if it was one that kept a file from being processed."""
    if result.trace:
        logging.getLogger("npumigrate").error("%s: internal error\n%s", result.name, result.trace.rstrip())


def keep_details(trace: str) -> str:
    """Keep an internal error's traceback where no result has a log, and say where: the end of a message.

    The errors of one process are in one file, in the folder for temporary files.
    """
    try:
        path = _details_file()
        with open(path, "a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(f"npumigrate {__version__}, Python {sys.version}\n{trace.rstrip()}\n\n")
    except OSError:
        return _("no log file could be written")
    return _("details: {path}", path=path)


@cache
def _details_file() -> str:
    number, path = tempfile.mkstemp(prefix="npumigrate-", suffix=".log")
    os.close(number)
    return path
