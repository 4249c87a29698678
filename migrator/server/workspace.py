"""The workspace: the options for its files, and what open files have to know of the others."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Optional

from migrator.files.document import document
from migrator.files.errors import Unreadable
from migrator.files.source import read_bytes
from migrator.lint.config_files import CONFIG_NAMES, Configuration
from migrator.lint.files import Stamp, Target, excluded, stamp, targets
from migrator.lint.options import KEYS, Options, checked_table, for_file
from migrator.names.tree import parse
from migrator.project.facts import FileFacts, scan_file
from migrator.project.frameworks import shown_framework
from migrator.project.module_names import npu_twins, packages_of
from migrator.project.offers import Offers
from migrator.project.project import Project, classes_of
from migrator.project.wanted_versions import lines_with_versions
from migrator.run.loading import may_tell

# More files are no project, but somebody's home folder.
_MOST_FILES = 50_000
_AT_ONCE = 100
LARGEST = 1_000_000  # characters of a file that is looked at: the editor waits meanwhile

_NOTHING = FileFacts()
_WHERE = "the editor's settings for npumigrate"


class Settings:
    """The options for files, read again whenever a configuration file has changed."""

    def __init__(self) -> None:
        self.of_editor: dict[str, Any] = {}
        self.folders: list[Path] = []  # of the workspace
        self._known: dict[Path, tuple[Stamp, Options]] = {}

    def set_folders(self, folders: list[Path]) -> None:
        """The workspace has these folders now."""
        self.folders = folders
        self._known.clear()

    def take(self, given: Any) -> None:
        """Take over the editor's settings; they beat the files. Raises ConfigError, and keeps the old ones.

        They are a table with the keys of a configuration file, at the top or below
        ``settings`` or ``npumigrate``.
        """
        values = given if isinstance(given, Mapping) else {}
        for inner in ("settings", "npumigrate"):
            if isinstance(values.get(inner), Mapping):
                values = values[inner]
        known = {key: option for key, option in KEYS.items() if "editor" in option.set_by}
        root = self.folders[0] if self.folders else Path.cwd()
        values = {key: value for key, value in values.items() if value is not None or key not in known}
        self.of_editor = checked_table(values, _WHERE, root, known)
        self._known.clear()

    def target(self, place: Path) -> Optional[Target]:
        """A file with its options, or None where it is left out. Raises ConfigError."""
        options = for_file(self._options(place.parent), place, self.of_editor)
        # Files that lint would not take from the project; of others, those of installed packages.
        strange = bool(self.folders) and self.folder_of(place) is None
        seen = options._replace(root=Path(place.anchor)) if strange else options
        return None if excluded(place, seen) else Target(str(place), place, options)

    def folder_of(self, place: Path) -> Optional[Path]:
        """The innermost folder of the workspace that holds a file."""
        return max((f for f in self.folders if f in place.parents), key=lambda f: len(f.parts), default=None)

    def _options(self, folder: Path) -> Options:
        around = (folder, *folder.parents)
        state = stamp(os.path.join(parent, name) for parent in around for name in CONFIG_NAMES)
        known = self._known.get(folder)
        if known is None or known[0] != (*state, *stamp(known[1].extended)):
            root = self.folder_of(folder / "file") or folder
            options = Configuration(self.of_editor, projects=[root]).options_for(folder)
            if not options.origin:
                options = options._replace(root=root)
            known = self._known[folder] = ((*state, *stamp(options.extended)), options)
        return known[1]


class WorkspaceFacts:
    """The facts of each file, by the folder of the workspace that it lies in, None outside of all."""

    def __init__(self) -> None:
        self._facts: dict[Optional[Path], dict[Path, FileFacts]] = {}
        self._names: dict[Path, set[str]] = {}
        self._requirements: dict[Path, tuple[str, ...]] = {}

    def project(self, folder: Optional[Path], place: Path) -> Project:
        """What a file knows of itself and of the others in its folder."""
        files = self._facts.get(folder, {})
        if folder is None:
            own = files.get(place, _NOTHING)
            return Project(own.classes, offers=Offers(own.offers))
        known = [files[place] for place in sorted(files)]
        if folder not in self._requirements:
            self._requirements[folder] = tuple(lines_with_versions(folder))
        names = self._names.get(folder, set())
        return Project(
            classes_of(known),
            packages=packages_of(names),
            twins=npu_twins(names),
            offers=Offers.of_all(one.offers for one in known),
            requirements=self._requirements[folder],
        )

    def learn(self, folder: Optional[Path], target: Target, text: Optional[str]) -> bool:
        """Look at one file again; None stands for one that is gone. Says whether that changed the facts."""
        files = self._facts.setdefault(folder, {})
        if folder is not None:
            self._names.setdefault(folder, set()).add(target.name)
        scanned = scan_file(target.name, text) if text is not None else _NOTHING
        new = FileFacts(scanned.classes, offers=scanned.offers)
        old = files.pop(target.place, _NOTHING)
        if old != _NOTHING and new == _NOTHING and text is not None and not parses(text):
            new = old  # somebody types just now
        if new != _NOTHING:
            files[target.place] = new
        return new != old

    def scan(self, folder: Path, configuration: Configuration) -> Iterator[bool]:
        """Look at all files of a folder, some at each step. Says whether something was found."""
        found = False
        for number, target in enumerate(targets([str(folder)], configuration, lambda _: None)):
            if number >= _MOST_FILES:
                break
            found = self.learn(folder, target, text_of(target)) or found
            if number % _AT_ONCE == _AT_ONCE - 1:
                yield found
                found = False
        yield found

    def forget(self, folder: Path) -> None:
        """The folder has left the workspace."""
        self._facts.pop(folder, None)
        self._names.pop(folder, None)
        self._requirements.pop(folder, None)


def parses(text: str) -> bool:
    """Whether a text is Python just now."""
    try:
        parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def text_of(target: Target) -> Optional[str]:
    """The text of a file on the disk that may define what others have to know; None without."""
    try:
        data = read_bytes(target.place)
        tells = len(data) <= LARGEST and may_tell(data, shown_framework(data, target.path))
        return document(data, target.path).text if tells else None
    except Unreadable:
        return None
