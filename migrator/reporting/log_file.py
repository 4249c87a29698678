"""``npumigrate.log``: what the tool did, for a person who has to find out why."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from logging.handlers import RotatingFileHandler
from pathlib import Path

LOG_NAME = "npumigrate.log"
_ONE_MEGABYTE = 1024 * 1024
_OLD_FILES = 9  # ten with the current one


@contextmanager
def log_to(folder: Path) -> Iterator[None]:
    """Write the log into ``folder`` while the context is open."""
    handler = RotatingFileHandler(
        folder / LOG_NAME,
        maxBytes=_ONE_MEGABYTE,
        backupCount=_OLD_FILES,
        encoding="utf-8",
        errors="backslashreplace",
        delay=False,
    )
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    handler.setLevel(logging.INFO)
    logger = logging.getLogger("npumigrate")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        handler.close()
