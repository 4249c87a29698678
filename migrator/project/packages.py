"""The packages that a project brings along."""

from __future__ import annotations

from collections.abc import Iterable


def packages_of(files: Iterable[str]) -> frozenset[str]:
    """The folders of the packages that lie in no other one, of files with these names.

    With them the modules in folders that are no packages, without their ending.
    """
    python = [file for file in files if file.endswith(".py")]
    folders = {file.rpartition("/")[0] for file in python if file.rpartition("/")[2] == "__init__.py"}
    outermost = {folder for folder in folders if folder and folder.rpartition("/")[0] not in folders - {""}}
    return frozenset(outermost | {file[:-3] for file in python if file.rpartition("/")[0] not in folders})
