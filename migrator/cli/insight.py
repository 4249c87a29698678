"""What ``verify --insight`` and ``emulate --report`` write once a program has ended."""

from __future__ import annotations

import os
from collections.abc import Container
from pathlib import Path

from rich.console import Console

from migrator.cli.ending import say
from migrator.language import _

REPORTS = "migration_report"


def insight_folder(migrated: Path) -> Path:
    """Beside the reports of the migration, or in a folder of its own where there are none."""
    reports = migrated / REPORTS
    return reports if reports.is_dir() else migrated / "npu_insight"


def write_insight(
    notes: Path,
    folder: Path,
    root: Path,
    versions: tuple[str, str],
    soc: str,
    old: Container[str] = (),
    shown: bool = True,
) -> None:
    """Judge what was recorded in ``notes``, write the reports to a folder, and print the first rows.

    ``versions`` are the torch that the project is for, empty if not known, and the one that ran.
    """
    from migrator.insight.report import find_rows, recorded_run, write_reports
    from migrator.insight.terminal import show_insight

    run = recorded_run(notes, *versions, soc, old)
    if not run.processes:
        if shown:
            say(_("insight: nothing was recorded: no process imported torch_npu and ended normally"))
        return
    rows = find_rows(run, root)
    try:
        write_reports(folder, run, rows)
    except OSError as error:
        say(_("insight: cannot write to {folder}: {strerror}", folder=folder, strerror=error.strerror))
        return
    if shown:
        where = os.path.relpath(folder)
        where = str(folder) if where.startswith("..") else where
        show_insight(Console(stderr=True, highlight=False), run, rows, where)
