"""The files to lint with the options for each, and what a report shows of them."""

from __future__ import annotations

import argparse
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Callable, Optional

from migrator.core.changes import PlacedEdit, placed_edits
from migrator.core.settings import Settings
from migrator.files.document import Document, document
from migrator.files.errors import Unreadable, shown, unreadable
from migrator.files.source import lines_of, read_bytes
from migrator.findings.finding import Finding
from migrator.language import _
from migrator.light import NamedTuple
from migrator.lint.config_files import Configuration
from migrator.lint.options import ConfigError, Options, RuleSet, for_file, ignored_codes, path_matcher

Stamp = tuple[tuple[str, int, int], ...]


class Target(NamedTuple):
    """A file to lint: ``path`` as the user spelled it, ``place`` absolute.

    ``data`` is its content where that is not read from the disk. ``top`` is the folder that the user named,
    where it was found below one: a link out of that is not written through. ``ignored`` are codes, or
    beginnings of codes, of ``rules`` whose findings do not count in it.
    """

    path: str
    place: Path
    options: Options
    data: Optional[bytes] = None
    top: Optional[Path] = None
    rules: RuleSet = RuleSet(Settings(version=""))
    ignored: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Its name inside the project: that below the folder of its configuration."""
        return _name(self.place, self.options)

    @property
    def is_of_whole(self) -> bool:
        """Whether it was found below a folder that is all of a project, as far as configurations tell."""
        above, root = self.top, self.options.root
        return above is not None and (not self.options.origin or above == root or above in root.parents)

    def judged_by(self, rules: RuleSet) -> Target:
        """The file with the rules for it."""
        return self._replace(rules=rules, ignored=ignored_codes(self.options, self.place))


def stamp(files: Iterable[str]) -> Stamp:
    """The state of those of some files that exist: it is another one when one of them is written."""
    found = []
    for file in files:
        with suppress(OSError):
            status = os.stat(file)
            found.append((file, status.st_mtime_ns, status.st_size))
    return tuple(found)


def data_of(target: Target) -> bytes:
    """The bytes of a file. Raises Unreadable."""
    return read_bytes(target.place) if target.data is None else target.data


def _name(place: Path, options: Options) -> str:
    name = str(place)
    root = str(options.root).rstrip(os.sep) + os.sep
    return name[len(root) :] if name.startswith(root) else name


def targets(
    paths: Sequence[str],
    configuration: Configuration,
    trouble: Callable[[str], None],
    native: Callable[[str, Path], None] = lambda *_: None,
) -> Iterator[Target]:
    """The Python files, notebooks and texts of other known types among ``paths`` and below them, each once.

    A file that is named is taken, whatever it is called and whether it is excluded or
    not (unless force-exclude is set). ``trouble`` is given a line for each path,
    folder or configuration that cannot be used; the others are. ``native`` is given
    the name inside the project and the place of each C++ or CUDA file below the folders.
    """
    seen: set[Path] = set()
    for path in paths:
        place = Path(os.path.abspath(path))
        try:
            try:
                is_folder = stat.S_ISDIR(os.stat(place).st_mode)
            except OSError as error:
                trouble(f"{shown(path)}: {unreadable(error)}")
                continue
            if is_folder:
                found = _below(path, place, configuration, trouble, native)
            else:
                options = configuration.options_for(place.parent)
                named = not (options.force_exclude and excluded(place, options))
                found = iter([_target(path, place, configuration, options)] if named else [])
            for target in found:
                if target.place not in seen:
                    seen.add(target.place)
                    yield target
        except ConfigError as error:
            trouble(str(error))


def _target(path: str, place: Path, configuration: Configuration, options: Options) -> Target:
    return Target(path, place, for_file(options, place, configuration.command_line))


def excluded(place: Path, options: Options) -> bool:
    """Whether ``exclude`` or ``extend-exclude`` leave out a file, or its folders below the root."""
    folders = (folder.as_posix() for folder in place.parents if options.root in folder.parents)
    return _excluded(options, place.as_posix(), False) or any(_excluded(options, f, True) for f in folders)


def _below(
    path: str,
    top: Path,
    configuration: Configuration,
    trouble: Callable[[str], None],
    native: Callable[[str, Path], None],
) -> Iterator[Target]:
    from migrator.files.discover import kind_of_file, listing, walk
    from migrator.files.patterns import GitIgnore
    from migrator.native.model import is_native

    ignore = GitIgnore(top)

    def look(place: tuple[str, str]) -> tuple[list[Target], list[tuple[str, str]]]:
        """The files of a folder, which is given as shown and as it is, and its folders."""
        shown_folder, folder = place
        files: list[Target] = []
        folders: list[tuple[str, str]] = []
        try:
            options = configuration.options_for(Path(folder))
            entries = listing(folder)
        except ConfigError as error:
            trouble(_("{error}: files below {folder} are not linted", error=error, folder=shown(folder)))
            return [], []
        except OSError as error:
            trouble(f"{shown(shown_folder or folder)}: {unreadable(error)}")
            return [], []
        for item in entries:
            try:
                is_folder = item.is_dir(follow_symlinks=False)
                cpp = not is_folder and is_native(item.name)
                wanted = is_folder or (
                    item.is_file() and (cpp or kind_of_file(item.name, item.path) != "file")
                )
                if not wanted:
                    continue
            except OSError:
                continue
            if _excluded(options, item.path.replace(os.sep, "/"), is_folder):
                continue
            if options.respect_gitignore and ignore.ignores(item.path, is_folder):
                continue
            name = f"{shown_folder}/{item.name}" if shown_folder else item.name
            if cpp:
                native(_name(Path(item.path), options), Path(item.path))
            elif not is_folder:
                files.append(_target(name, Path(item.path), configuration, options)._replace(top=top))
            elif not os.path.lexists(os.path.join(item.path, "pyvenv.cfg")):
                folders.append((name, item.path))
        return files, folders

    for files in walk([("" if path == "." else path.rstrip("/"), str(top))], look):
        yield from files


def _excluded(options: Options, path: str, folder: bool) -> bool:
    sets = (options.exclude, *options.extend_exclude)
    return any(path_matcher(each.patterns, each.root)(path, folder) for each in sets)


class Texts:
    """``contents`` are those of files that are not read from the disk. The last file shown is kept."""

    def __init__(self, contents: Mapping[Path, bytes]) -> None:
        self._contents = dict(contents)
        self._document = lru_cache(maxsize=1)(self._read)
        self._lines = lru_cache(maxsize=1)(self._split)

    def change(self, place: Path, data: bytes) -> None:
        """From now on the lines are those of a fixed file."""
        self._contents[place] = data
        self._document.cache_clear()
        self._lines.cache_clear()

    def lines(self, finding: Finding) -> Sequence[str]:
        """The source lines of the file or cell that a finding lies in, empty where they are gone."""
        return self._lines(finding.file, finding.cell)

    def edits(self, finding: Finding) -> Sequence[PlacedEdit]:
        """The edits of a finding's fix with lines and columns; none where the file is gone."""
        item = self._document(finding.file)
        return placed_edits(item, item.lines, finding.fix) if item and finding.fix else []

    def _read(self, file: str) -> Optional[Document]:
        place = Path(os.path.abspath(file))
        data = self._contents.get(place)
        try:
            return document(read_bytes(place) if data is None else data, file)
        except Unreadable:
            return None

    def _split(self, file: str, number: Optional[int]) -> list[str]:
        item = self._document(file)
        if item is None:
            return []
        if item.notebook is None:
            return lines_of(item.text)
        return lines_of(next((cell.source for cell in item.notebook.cells if cell.number == number), ""))


class CommandLine(argparse.Namespace):
    """What was said to ``npumigrate lint``; ``given`` has the options that a configuration can hold, too."""


@dataclass(eq=False, repr=False)
class Outcome:
    """What was found, and what was done about it.

    ``found`` holds what counts, with places as in the files; ``texts`` knows their lines.
    ``troubles`` are lines about files that could not be looked at. ``versions`` are those of torch that the
    findings are for, each with the requirement that asks for it. ``changed`` has the old and the
    new bytes of files that were, or with ``diff`` would be, fixed, and ``fixed`` how often each rule was.
    """

    line: CommandLine
    options: Options
    texts: Texts
    found: list[Finding] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    fixed: dict[str, Mapping[str, int]] = field(default_factory=dict)
    changed: dict[str, tuple[bytes, bytes]] = field(default_factory=dict)
