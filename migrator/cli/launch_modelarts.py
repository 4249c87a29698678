"""``npumigrate launch modelarts``: a boot file for training jobs on ModelArts."""

from __future__ import annotations

from pathlib import Path
from typing import Optional

import typer

from migrator.cli.ending import note, stopping_at
from migrator.cli.launch_files import find_start, write_all
from migrator.cli.next_commands import say_next, shell_word
from migrator.language import _


def modelarts(
    folder: Path,
    main: Optional[str] = None,
    inputs: Optional[list[str]] = None,
    outputs: Optional[list[str]] = None,
    overwrite: bool = False,
) -> None:
    """Make a boot file for ModelArts that starts the training script as torch wants it.

    What was assumed is said on the standard error. Exit status: 0 done; 2 usage error
    or nothing written.
    """
    from migrator.files.errors import SourceError, shown
    from migrator.launch.modelarts import (
        MappingError,
        boot_file,
        parse_input,
        parse_output,
        reads_init_method,
    )

    with stopping_at(MappingError, SourceError):
        pairs = tuple(map(parse_input, inputs or [])), tuple(map(parse_output, outputs or []))
        start, text, notes = find_start(folder, main)
        made = boot_file(start, *pairs)
        write_all(folder, made, overwrite)
    ranks = start.way.ranks if start.way else ""
    if ranks == "program":
        notes.append(
            f"{shown(start.entry)} starts its own ranks: it is started once on each node, and chooses NPUs"
        )
    if ranks in ("none", "unseen"):
        notes.append(
            _(
                "the training runs on one NPU: nothing shows that it is distributed, and on "
                "several NPUs each rank would do the whole work"
            )
        )
    if reads_init_method(text) and ranks != "program":
        notes.append(
            _(
                "{entry} can do without --init_method: where the PyTorch engine gives it, the "
                "boot file keeps it, and sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT",
                entry=shown(start.entry),
            )
        )
    for line in (*notes, *made.notes):
        note(f"assumed: {line}")
    for name in made.files:
        typer.echo(shown(folder / name))
    say_next(f"npumigrate verify {shell_word(str(folder))}")
