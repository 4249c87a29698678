"""What ``.gitignore`` files and ``.git/info/exclude`` leave out."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

from migrator.files.errors import Unreadable
from migrator.files.patterns import expression
from migrator.files.source import read_settings

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_FEW_STARS = 3


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

    return GitIgnoreSpec([pattern for line in lines for pattern in _patterns(line)])


def _patterns(line: str) -> Sequence[Any]:
    """The pattern of a line, in a list; none where git takes no notice of it.

    For many stars pathspec makes an expression that tries all ways to share a name out among them: with ten
    that takes years.
    """
    from pathspec import GitIgnoreSpec
    from pathspec.pattern import RegexPattern

    try:
        if line.count("*") <= _FEW_STARS or line.startswith("#"):
            return GitIgnoreSpec.from_lines([line]).patterns
        wanted = line.rstrip()
        negated = wanted.startswith("!")
        regex = expression(wanted[negated:]) or "(?!)"
        return [
            RegexPattern(re.compile(rf"(?s){regex}(?:/{'' if wanted.endswith('/') else '|$'})"), not negated)
        ]
    except Exception:  # that of pathspec, or of the expression it makes
        return []
