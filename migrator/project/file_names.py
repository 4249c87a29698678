"""What the names of a project's files say: the packages that it brings along, and the twins for NPUs.

A program with ``cuda_accelerator.py`` and ``npu_accelerator.py`` chooses one of them. Where the one for CUDA
is changed, two are for NPUs, and the wrong one is chosen: its name, and what is keyed by it, still say CUDA.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_FOR_CUDA = re.compile(r"(?<![a-z])(cuda|gpu|nccl)(?![a-z])", re.IGNORECASE)
_FOR_NPUS = {"cuda": ("npu", "ascend"), "gpu": ("npu", "ascend"), "nccl": ("hccl",)}


def npu_twins(files: Iterable[str]) -> frozenset[str]:
    """Those of the files beside which there is one whose name differs in the device only."""
    every = frozenset(files)
    return frozenset(name for name in every if any(twin in every for twin in _for_npus(name)))


def _for_npus(name: str) -> Iterable[str]:
    """What the file for NPUs may be called: a folder or the file itself is named after the device."""
    for match in _FOR_CUDA.finditer(name):
        for word in _FOR_NPUS[match.group().lower()]:
            yield name[: match.start()] + word + name[match.end() :]


def packages_of(files: Iterable[str]) -> frozenset[str]:
    """The folders of the packages that lie in no other one, of files with these names.

    With them the modules in folders that are no packages, without their ending.
    """
    python = [file for file in files if file.endswith(".py")]
    folders = {file.rpartition("/")[0] for file in python if file.rpartition("/")[2] == "__init__.py"}
    outermost = {folder for folder in folders if folder and folder.rpartition("/")[0] not in folders - {""}}
    return frozenset(outermost | {file[:-3] for file in python if file.rpartition("/")[0] not in folders})
