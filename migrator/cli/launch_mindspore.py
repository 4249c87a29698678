"""``npumigrate launch mindspore``: a script that starts a program of MindSpore on NPUs."""

from __future__ import annotations

from pathlib import Path
from typing import Optional

import typer

from migrator.cli.ending import note, stopping_at
from migrator.cli.launch_files import find_script, write_all


def mindspore(folder: Path, main: Optional[str] = None, overwrite: bool = False) -> None:
    """Make a script that starts a program of MindSpore by msrun or a rank table.

    What was assumed is said on the standard error. Exit status: 0 done; 2 usage error
    or nothing written.
    """
    from migrator.files.errors import SourceError, shown
    from migrator.launch.script import mindspore_script

    with stopping_at(SourceError):
        entry, _, notes = find_script(folder, main, "mindspore")
        made = mindspore_script(entry)
        write_all(folder, made, overwrite)
    for line in notes:
        note(f"assumed: {line}")
    for name in made.files:
        typer.echo(shown(folder / name))
