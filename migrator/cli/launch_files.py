"""What the launcher targets' commands read and write: files, the project's training script."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from migrator.cli.ending import stop
from migrator.language import _

if TYPE_CHECKING:
    from migrator.launch.target import Launch, Start


def text_of(file: Path, encoding: str = "utf-8-sig") -> str:
    """The text of a file with its newlines as they are; stop where there is none."""
    from migrator.files.errors import Unreadable
    from migrator.files.source import read_settings

    try:
        return read_settings(file).decode(encoding)
    except Unreadable as error:
        cause = error.__cause__
        if isinstance(cause, OSError):
            stop("{file} cannot be read: {strerror}", file=file, strerror=cause.strerror)
        stop(f"{file} {error}")
    except UnicodeDecodeError:
        stop("{file} cannot be read: it is not UTF-8", file=file)


def give(text: str, output: Path | None) -> None:
    """Print a text, or put it in its file by one rename."""
    if output is None:
        typer.echo(text.encode("utf-8"), nl=False)
        return
    from migrator.files.replacing import replace_file

    replace_file(output, text.encode("utf-8"))


def write_all(folder: Path, launch: Launch, overwrite: bool) -> None:
    """Write a target's files, each by one rename; none where one of them is there and may not be replaced.

    Raises ResultExists for that, and CannotWrite.
    """
    from migrator.files.errors import CannotWrite, ResultExists, cannot_write, shown
    from migrator.files.replacing import refuse_link, replace_file

    for name in launch.files:
        if os.path.lexists(folder / name) and not overwrite:
            raise ResultExists("{folder} exists: replace it with --overwrite", folder=shown(folder / name))
        if os.path.islink((folder / name).parent) and (folder / name).parent != folder:
            raise CannotWrite(
                "{parent} is a link where the files belong: rename it", parent=shown((folder / name).parent)
            )
        refuse_link(folder / name, folder)
    for path in {(folder / name).parent for name in launch.files}:
        try:
            path.mkdir(exist_ok=True)
        except OSError as error:
            raise cannot_write(error, path) from error
    for name, text in launch.files.items():
        replace_file(folder / name, text.encode("utf-8"), folder)


def find_script(folder: Path, main: str | None, framework: str = "torch") -> tuple[str, str, list[str]]:
    """The script to start in a migrated project, its text, and what was assumed of it.

    It is ``main``, or the likeliest one of the framework. Raises SourceError where there is none.
    """
    from migrator.files.discover import discover
    from migrator.files.errors import SourceError, shown
    from migrator.files.source import read, text_below
    from migrator.launch.add import place_of, refuse_other_framework
    from migrator.project.entry import candidate, ranked

    if not folder.is_dir():
        raise SourceError(
            "{folder} is not a folder: give the folder of the migrated project with -o", folder=shown(folder)
        )
    names = [found.name for found in discover(folder) if found.kind == "python"]
    notes = []
    if main:
        entry = place_of(folder, main)
    else:
        texts = ((name, text_below(folder, name)) for name in names)
        candidates = (candidate(name, text, framework) for name, text in texts if text is not None)
        likely = ranked(filter(None, candidates))
        if not likely:
            raise SourceError(
                "no training script was found in {folder}: give it with -m FILE", folder=shown(folder)
            )
        entry = likely[0].name
        others = (
            _("; {likely} more are possible (-m FILE)", likely=len(likely) - 1) if len(likely) > 1 else ""
        )
        notes.append(_("{entry} is the training script{others}", entry=shown(entry), others=others))
    text = read(folder / entry, entry).text
    refuse_other_framework(entry, text, framework)
    return entry, text, notes


def find_start(folder: Path, main: str | None) -> tuple[Start, str, list[str]]:
    """What to start in a migrated project, the script's text, and what was assumed of them.

    The script is ``main``, or the likeliest one. Raises SourceError where there is none.
    """
    from migrator.files.source import text_below
    from migrator.launch.target import start_of
    from migrator.project.entry import has_relative_imports
    from migrator.project.start_ways import start_ways

    entry, text, notes = find_script(folder, main)
    relative = has_relative_imports(text)
    ways = start_ways([entry], partial(text_below, folder), mended=False)
    start = start_of(entry, relative, lambda name: (folder / name).is_file(), ways)
    return start, text, notes
