"""The folder of reports that a migration or an analysis writes: the log and the tables, and the summary."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from migrator import __version__
from migrator.files.errors import cannot_write, shown
from migrator.report.csv_tables import CsvTables
from migrator.report.log_file import log_to


@contextmanager
def run_reports(
    folder: Path, place: Path, runs: tuple[str, ...], source: Path, torch: str, how: str
) -> Iterator[CsvTables]:
    """The tables of some runs in a folder, with the log beside them; ``how`` is what the log says of the run.

    Raises CannotWrite, which names the folder by its later ``place``.
    """
    logger = logging.getLogger("npumigrate")
    try:
        with log_to(folder), CsvTables(folder, runs) as tables:
            python = ".".join(map(str, sys.version_info[:3]))
            logger.info("npumigrate %s, Python %s, torch %s", __version__, python, torch)
            logger.info("input %s; %s", shown(os.path.abspath(source)), how)
            yield tables
    except OSError as error:
        raise cannot_write(error, place) from error
