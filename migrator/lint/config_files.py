"""Finding and reading ``npumigrate.toml`` and ``pyproject.toml``: the nearest one to a file wins.

Where none names the torch version, the one that the project's requirements ask for does.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Optional

from migrator.files.errors import Unreadable, shown
from migrator.files.patterns import repository
from migrator.files.source import read_settings
from migrator.language import N_, _
from migrator.lint.options import ConfigError, Options, checked_table, read_named, with_values

_PLACES = {"rules", "baseline", "cache-dir"}
_OWN = (".npumigrate.toml", "npumigrate.toml")
CONFIG_NAMES = (*_OWN, "pyproject.toml")


class Configuration:
    """The options for each folder.

    ``command_line`` holds checked values that beat every file. With ``file`` that one is used for all
    folders, with ``isolated`` none is. Where a file that lies nearest says nothing of the torch version, the
    requirements beside it do; without such a file, those in the first of ``projects`` that has any.
    """

    def __init__(
        self,
        command_line: Mapping[str, Any],
        file: Optional[Path] = None,
        isolated: bool = False,
        projects: Sequence[Path] = (),
    ) -> None:
        self.command_line = command_line
        self._file = file
        self._isolated = isolated
        self._projects = projects
        self._of_folder: dict[Path, Optional[Path]] = {}
        self._of_file: dict[Optional[Path], Options] = {}

    def options_for(self, folder: Path) -> Options:
        """The options for the files in a folder, an absolute path. Raises ConfigError."""
        return self._read(self._file or self._nearest(folder))

    def _read(self, file: Optional[Path]) -> Options:
        if file not in self._of_file:
            cwd, first = Path.cwd(), next(iter(self._projects), None)
            root = file.parent if file is not None and file != self._file else cwd
            if file is None and first is not None and not first.is_relative_to(cwd):
                # What lies elsewhere is a project of its own, whose names do not begin with its place.
                root = [each for each in self._projects if each != cwd][-1]
            options = Options(root=root, origin=str(file or ""), given=frozenset(self.command_line))
            layers = _layers(file) if file is not None else {}
            for layer, values in layers.items():
                if file != self._file:
                    _check_inside(layer, values)
                options = with_values(options, values)
            options = options._replace(extended=tuple(str(layer) for layer in layers if layer != file))
            options = with_values(options, self.command_line)
            nearest = file is not None and file != self._file
            self._of_file[file] = _with_version(options, (root,) if nearest else self._projects)
        return self._of_file[file]

    def _nearest(self, folder: Path) -> Optional[Path]:
        if self._isolated:
            return None
        if folder not in self._of_folder:
            found = _in_folder(folder)
            if found is None and folder.parent != folder:
                found = self._nearest(folder.parent)
            self._of_folder[folder] = found
        return self._of_folder[folder]


def _check_inside(file: Path, values: Mapping[str, Any]) -> None:
    """Raises ConfigError where a file that nobody named leads out of its repository, or of its folder.

    It may have come with a tree that is only looked at: packs and baselines are read, the cache is written.
    """
    tree = repository(file.absolute().parent) or file.absolute().parent
    for key in _PLACES & values.keys():
        real = os.path.normpath if key == "cache-dir" else os.path.realpath  # the cache follows no link
        for place in [values[key]] if isinstance(values[key], str) else values[key]:
            if not Path(real(place)).is_relative_to(real(tree)):
                said = N_("{file}: {key}: {place} is outside {tree}")
                what = _(said, file=shown(file), key=key, place=shown(place), tree=shown(tree))
                raise ConfigError(
                    "{what}: name it on the command line, or name this file with --config", what=what
                )


def _in_folder(folder: Path) -> Optional[Path]:
    for name in _OWN:
        if os.path.isfile(folder / name):  # a folder that may not be entered has none
            return folder / name
    project = folder / "pyproject.toml"
    try:
        data = read_settings(project)
    except Unreadable as error:
        # An unreadable one counts as missing; a path that is not a file is reported where it is read.
        return None if error.__cause__ else project
    if b"\n[tool.npumigrate]" in data:  # most have our table so: no need to read it twice
        return project
    if b"npumigrate" not in data:
        return None
    try:
        tool = _parsed(data.decode("utf-8-sig"), "").get("tool")
    except ValueError:  # reported where it is read
        return project
    return project if isinstance(tool, dict) and "npumigrate" in tool else None


def _layers(file: Path) -> dict[Path, dict[str, Any]]:
    """The values of a file and of those that it extends, the last one of these first. Raises ConfigError."""
    found: dict[Path, dict[str, Any]] = {}
    place: Optional[Path] = file
    while place is not None:
        if place in found:
            raise ConfigError("{file}: circular extend: {place}", file=shown(file), place=shown(place))
        try:
            found[place] = read_file(place)
        except ConfigError as error:
            raise ConfigError(f"{shown(file)}: extend: {error}" if found else str(error)) from None
        extended = found[place].pop("extend", None)
        place = Path(os.path.normpath(extended)) if extended else None
    return dict(reversed(found.items()))


def read_file(file: Path) -> dict[str, Any]:
    """The checked values of a configuration file. Raises ConfigError, with the place and what to do."""
    try:
        text = read_named(file).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(
            "{file}: not TOML: not UTF-8 (byte {start})", file=shown(file), start=error.start
        ) from None
    data = _parsed(text, shown(file))
    where = shown(file)
    if file.name == "pyproject.toml":
        where += " [tool.npumigrate]"
        for name in ("tool", "npumigrate"):
            data = data.get(name, {})
            if not isinstance(data, dict):
                raise ConfigError("{where}: must be a table", where=where)
    elif "tool" in data:
        raise ConfigError(
            "{where}: [tool.npumigrate] belongs in pyproject.toml: put its keys at the top level here",
            where=where,
        )
    return checked_table(data, where, file.absolute().parent)


def inline_values(texts: Sequence[str]) -> dict[str, Any]:
    """The checked values of ``--config KEY=VALUE`` options. Raises ConfigError."""
    values: dict[str, Any] = {}
    for text in texts:
        where = _("--config {text!r}", text=text)
        values.update(checked_table(_parsed(text, where), where, Path.cwd()))
        if "extend" in values:
            raise ConfigError("{where}: extend belongs in configuration files", where=where)
    return values


def _parsed(text: str, where: str) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError("{where}: not TOML: {error}", where=where, error=error) from None
    except RecursionError:
        raise ConfigError("{where}: not TOML: brackets nested too deeply", where=where) from None


def asked_folders(paths: Sequence[str]) -> tuple[Path, ...]:
    """The folders whose requirements hold for the paths of a command line, the nearest first.

    Those around the one path that is named, as far as its repository goes, and the current folder.
    """
    here = Path.cwd()
    if len(paths) != 1 or paths[0] == "-":
        return (here,)
    place = Path(os.path.abspath(paths[0]))
    folder = place if place.is_dir() else place.parent
    top = repository(folder)
    around = (each for each in folder.parents if top is not None and each.is_relative_to(top))
    return (folder, *around, here)


def _with_version(options: Options, folders: Iterable[Path]) -> Options:
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
    return options._replace(version=wanted.version, version_why=wanted.why) if wanted else options
