"""The files for CUDA that have a twin for NPUs: ``cuda_accelerator.py`` and ``npu_accelerator.py``.

A program with both chooses one of them. Where the one for CUDA is changed, two are for NPUs, and the wrong
one is chosen: its name, and what is keyed by it, still say CUDA.
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
