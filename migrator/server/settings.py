"""Which options hold for an open file: those of the configuration files, and of the editor."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Optional

from migrator.lint.config_files import CONFIG_NAMES, Configuration
from migrator.lint.files import Stamp, Target, excluded, stamp
from migrator.lint.options import KEYS, Options, checked, for_file, unknown_key

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
        taken = {}
        for key, value in values.items():
            if key not in known:
                raise unknown_key(key, known, _WHERE)
            if value is not None:
                taken[key] = checked(key, value, _WHERE, self.folders[0] if self.folders else Path.cwd())
        self.of_editor = taken
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
