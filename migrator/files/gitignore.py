"""What ``.gitignore`` files and ``.git/info/exclude`` leave out."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Optional

from migrator.files.errors import Unreadable
from migrator.files.source import read_settings

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec


class GitIgnore:
    """Answers for absolute paths; reads the files of each folder once.

    Outside of a git repository, the ``.gitignore`` files from ``top`` on count.
    """

    def __init__(self, top: Path) -> None:
        self._top = str(repository(top) or top)
        self._known: dict[str, tuple[tuple[int, GitIgnoreSpec], ...]] = {}

    def ignores(self, path: str, folder: bool) -> bool:
        """Whether the file or folder is left out, the folders around it being not."""
        name = path + "/" if folder else path
        for start, spec in self._around(os.path.dirname(path)):
            # The nearest file that says something of a path decides.
            verdict = spec.check_file(name[start:]).include
            if verdict is not None:
                return verdict
        return False

    def _around(self, folder: str) -> tuple[tuple[int, GitIgnoreSpec], ...]:
        """What a folder and those around it leave out, the nearest first, and where the paths below begin."""
        if folder not in self._known:
            parent = os.path.dirname(folder)
            outer = () if folder in (self._top, parent) else self._around(parent)
            spec = _spec(Path(folder))
            own = () if spec is None else ((len(folder.rstrip("/")) + 1, spec),)
            self._known[folder] = (*own, *outer)
        return self._known[folder]


def repository(folder: Path) -> Optional[Path]:
    """The root of the git repository around an absolute folder, None outside of one."""
    if os.path.exists(folder / ".git"):
        return folder
    return repository(folder.parent) if folder.parent != folder else None


def _spec(folder: Path) -> Optional[GitIgnoreSpec]:
    lines: list[str] = []
    for name in (".git/info/exclude", ".gitignore"):
        try:
            lines += read_settings(folder / name).decode("utf-8", "replace").splitlines()
        except Unreadable:
            continue
    if not any(line.strip() and not line.startswith("#") for line in lines):
        return None
    from pathspec import GitIgnoreSpec

    try:
        return GitIgnoreSpec.from_lines(lines)
    except Exception:  # git takes no notice of a line that is no pattern, pathspec does
        return GitIgnoreSpec.from_lines(filter(_is_pattern, lines))


def _is_pattern(line: str) -> bool:
    from pathspec import GitIgnoreSpec

    try:
        GitIgnoreSpec.from_lines([line])
    except Exception:  # its own error, or that of the expression it makes
        return False
    return True
