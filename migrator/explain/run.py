"""Logs in, an explanation out."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Callable, Optional

from migrator.explain.judge import Explanation, explain
from migrator.explain.logs import ERROR_FILE, Log, lines, lines_of_error_file
from migrator.explain.scan import Scan
from migrator.explain.table import known


def explain_logs(
    logs: Sequence[Log], told: Callable[[int, int], object] = lambda done, total: None
) -> Optional[Explanation]:
    """What failed first in some logs; None where nothing did.

    ``told`` gets the bytes that are read, and of how many. Raises OSError for the one log that cannot be
    read; of several it is left out.
    """
    scan, total, done = Scan(known()), sum(log.size for log in logs), 0

    def read(count: int) -> None:
        nonlocal done
        done += count
        told(done, total)

    for log in logs:
        with suppress(*([OSError] if len(logs) > 1 else [])):
            if not log.path:
                scan.read(log, lines(sys.stdin.buffer, read))
            elif Path(log.path).name == ERROR_FILE:
                scan.read(log, lines_of_error_file(Path(log.path).read_bytes()))
            else:
                with open(log.path, "rb") as stream:
                    scan.read(log, lines(stream, read))
    return explain(scan)
