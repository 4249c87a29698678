"""The torch version of a project whose user names none: the one that its requirements ask for."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from migrator.files.gitignore import repository
from migrator.lint.options import Options


def asked_folders(paths: Sequence[str]) -> tuple[Path, ...]:
    """The folders whose requirements hold for the paths of a command line, the nearest first.

    Those around the one path that is named, as far as its repository goes, and the current folder.
    """
    here = Path.cwd()
    if len(paths) != 1 or paths[0] == "-":
        return (here,)
    place = Path(os.path.abspath(paths[0]))
    return (*_around(place if place.is_dir() else place.parent), here)


def _around(folder: Path) -> Iterator[Path]:
    yield folder
    top = repository(folder)
    if top is not None:
        yield from (each for each in folder.parents if each.is_relative_to(top))


def with_version(options: Options, folders: Iterable[Path]) -> Options:
    """The options with the version that the first folder with requirements for torch asks for.

    They stay where they name one, and where no requirements do.
    """
    if options.version:
        return options
    from migrator.project.wanted_versions import wanted_version

    try:
        wanted = next(filter(None, map(wanted_version, dict.fromkeys(folders))), None)
    except FileNotFoundError:  # the folder that NPUMIGRATE_API_DB names: told where the rules are made
        return options
    return replace(options, version=wanted.version, version_why=wanted.why) if wanted else options
