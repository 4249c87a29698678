"""What open files have to know of the workspace's other files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Optional

from migrator.files.document import document
from migrator.files.errors import Unreadable
from migrator.files.source import read_bytes
from migrator.lint.config_files import Configuration
from migrator.lint.files import Target, targets
from migrator.names.tree import parse
from migrator.project.facts import FileFacts, scan_file
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
        return document(data, target.path).text if len(data) <= LARGEST and may_tell(data) else None
    except Unreadable:
        return None
