"""``npumigrate launch modelarts``: a boot file for training jobs on ModelArts."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Optional

import typer

from migrator.cli.ending import stop


def modelarts(
    folder: Path = typer.Option(
        ..., "--dir", "-o", metavar="DIR", help="The migrated project. The boot file is put there."
    ),
    main: Optional[str] = typer.Option(
        None, "--main", "-m", metavar="FILE", help="The training script; else the likeliest one."
    ),
    inputs: Optional[list[str]] = typer.Option(
        None,
        "--map",
        metavar="REMOTE=LOCAL",
        help="Download before the training: obs://bucket/data=/cache/data. May be repeated.",
    ),
    outputs: Optional[list[str]] = typer.Option(
        None,
        "--output",
        metavar="LOCAL=REMOTE",
        help="Upload after the training: /cache/out=obs://bucket/out. May be repeated.",
    ),
    overwrite: bool = typer.Option(False, "--overwrite", help="Replace the files of an earlier time."),
) -> None:
    """Make a boot file for ModelArts that starts the training script as torch wants it.

    What was assumed is said on the standard error. Exit status: 0 done; 2 wrong use
    or nothing written.
    """
    from migrator.files.errors import SourceError, shown
    from migrator.launch.modelarts import (
        BOOT,
        MappingError,
        adapter_files,
        boot_file,
        parse_input,
        parse_output,
    )

    try:
        pairs = tuple(map(parse_input, inputs or [])), tuple(map(parse_output, outputs or []))
        entry, relative, notes = _entry(folder, main)
        files = {BOOT: boot_file(entry, relative, lambda name: (folder / name).is_file())}
        if any(pairs):
            files.update(adapter_files(*pairs))
        else:
            notes.append("without --map and --output nothing is copied")
        _write_all(folder, files, overwrite)
    except (MappingError, SourceError) as error:
        stop(str(error))
    for note in notes:
        typer.echo(f"assumed: {note}", err=True)
    for name in files:
        typer.echo(shown(folder / name))


def _entry(folder: Path, main: str | None) -> tuple[str, bool, list[str]]:
    """The script as a path below the folder, whether it imports relatively, and what to tell the user."""
    from migrator.files.discover import discover
    from migrator.files.errors import SourceError, Unreadable, shown
    from migrator.files.source import read
    from migrator.launch.add import place_of
    from migrator.launch.entry import candidate, has_relative_imports, ranked
    from migrator.launch.modelarts import reads_init_method
    from migrator.project.distributed_use import is_distributed

    if not folder.is_dir():
        raise SourceError(f"{shown(folder)} is no folder: -o names that of the migrated project")
    candidates = []
    distributed = False
    for found in discover(folder):
        with suppress(Unreadable):
            if found.kind == "python":
                text = read(found.path, found.name).text
                candidates.append(candidate(found.name, text))
                distributed = distributed or is_distributed(text)
    notes = []
    if main:
        entry = place_of(folder, main)
    else:
        likely = ranked(filter(None, candidates))
        if not likely:
            raise SourceError(f"no training script was found in {shown(folder)}: -m FILE names it")
        entry = likely[0].name
        others = f"; {len(likely) - 1} more could be meant (-m FILE)" if len(likely) > 1 else ""
        notes.append(f"{shown(entry)} is the training script{others}")
    text = read(folder / entry, entry).text
    if not distributed:
        notes.append(
            "the training runs on one card: nothing shows that it is distributed, and on several cards each "
            "rank would do the whole work"
        )
    if reads_init_method(text):
        notes.append(
            f"{shown(entry)} can do without --init_method: where the PyTorch engine gives it, the boot file "
            "keeps it, and sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT"
        )
    return entry, has_relative_imports(text), notes


def _write_all(folder: Path, files: dict[str, str], overwrite: bool) -> None:
    """Write the files, each by one rename; none where one of them is there and may not be replaced."""
    from migrator.files.errors import ResultExists, cannot_write, shown
    from migrator.files.replacing import replace_file

    for name in files:
        if os.path.lexists(folder / name) and not overwrite:
            raise ResultExists(f"{shown(folder / name)} is there already: --overwrite replaces it")
    for path in {(folder / name).parent for name in files}:
        try:
            path.mkdir(exist_ok=True)
        except OSError as error:
            raise cannot_write(error, path) from error
    for name, text in files.items():
        replace_file(folder / name, text.encode("utf-8"))
