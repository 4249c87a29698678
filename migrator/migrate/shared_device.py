"""The module ``shared_device`` of a result of --keep-cuda: written where files import it."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable

from migrator.api_support.versions import TorchVersion
from migrator.core.keep_cuda import FILE, NAME
from migrator.data_folders import data_folder
from migrator.files.discover import Entry
from migrator.files.errors import CannotWrite
from migrator.files.naming import is_made
from migrator.files.output import OutputTree, add

_WITH_ACCELERATOR = (2, 6)
_OURS = "npumigrate --keep-cuda"


def is_imported(data: bytes) -> bool:
    """Whether a migrated file uses the module."""
    return NAME.encode() in data


def is_ours(entry: Entry) -> bool:
    """Whether a file of the input is the module of an earlier result: it is taken over as it is."""
    return is_made(entry.path, FILE, _OURS)


def add_copies(tree: OutputTree, folders: Iterable[str], version: TorchVersion) -> None:
    """Write the module into folders of the result.

    Raises CannotWrite where the project has another file of that name.
    """
    older = "" if version.tuple >= _WITH_ACCELERATOR else "_before_2_6"
    data = (data_folder("reports") / "keep_cuda" / f"{NAME}{older}.py").read_bytes()
    for folder in sorted(folders):
        name = posixpath.join(folder, FILE)
        there = tree.building / name
        if there.is_file() and not is_made(there, FILE, _OURS):
            raise CannotWrite(f"{name} is the project's own, and --keep-cuda needs the name: rename it")
        add(tree, name, data, replace=True)
