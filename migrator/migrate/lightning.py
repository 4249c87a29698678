"""The module ``ascend_lightning`` of a result: with it PyTorch Lightning finds NPUs."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable

from migrator.data_folders import data_folder
from migrator.files.discover import Entry
from migrator.files.naming import LIGHTNING, MADE, is_made
from migrator.files.output import OutputTree, add
from migrator.project.imports import Read
from migrator.project.offers import LIBRARY
from migrator.project.project import Project
from migrator.project.wanted_versions import limits_hold, wanted_of

_FILE = f"{LIGHTNING}.py"
_NAMES = frozenset({"pytorch-lightning", "lightning"})
_IMPORTED = re.compile(rf"^[ \t]*(?:from[ \t]+[\w.]+[ \t]+)?import[ \t]+{LIGHTNING}\b".encode(), re.MULTILINE)
# What Trainer of Lightning 2 does not take.
_OF_LIGHTNING_1 = re.compile(
    r"\bTrainer\([^()]{0,400}\bgpus\s*=|\bTrainer\.(?:from_argparse_args|add_argparse_args)\b"
)


def helps(project: Project, files: Iterable[str], read: Read) -> bool:
    """Whether the module is of use for a project: one on Lightning 2, that has nothing else of the name."""
    if not project.offers.of(LIBRARY) or any(
        limits_hold(">=2.0", limits) is False for limits in wanted_of(project.requirements, _NAMES).values()
    ):
        return False
    for name in files:
        text = read(name) or ""
        if posixpath.basename(name) == _FILE and MADE not in text[:1000]:
            return False
        if _OF_LIGHTNING_1.search(text):
            return False
    return True


def is_ours(entry: Entry) -> bool:
    """Whether a file of the input is the module of an earlier result: it is taken over as it is."""
    return is_made(entry.path, _FILE, MADE)


def is_imported(data: bytes) -> bool:
    """Whether a migrated file uses the module."""
    return LIGHTNING.encode() in data and _IMPORTED.search(data) is not None


def add_copies(tree: OutputTree, folders: Iterable[str]) -> None:
    """Write the module into folders of the result. Raises CannotWrite."""
    data = (data_folder("reports") / "lightning" / _FILE).read_bytes()
    for folder in sorted(folders):
        add(tree, posixpath.join(folder, _FILE), data, replace=True)
