"""What the names of a project's files say: the packages that it brings along, and the twins for NPUs.

A program with ``cuda_accelerator.py`` and ``npu_accelerator.py`` chooses one of them. Where the one for CUDA
is changed, two are for NPUs, and the wrong one is chosen: its name, and what is keyed by it, still say CUDA.
So it is with a file for another maker's devices, which torch may also call CUDA, as with ROCm.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_NPU = ("npu", "ascend")
_FOR_NPUS = {
    **dict.fromkeys(("cuda", "gpu", "rocm", "hip", "amd", "xpu", "mlu", "musa"), _NPU),
    **dict.fromkeys(("nccl", "rccl"), ("hccl",)),
}
_FOR_OTHERS = re.compile(rf"(?<![a-z])({'|'.join(_FOR_NPUS)})(?![a-z])", re.IGNORECASE)


def npu_twins(files: Iterable[str]) -> frozenset[str]:
    """Those of the files beside which there is one whose name differs in the device only."""
    every = frozenset(files)
    return frozenset(name for name in every if any(twin in every for twin in _for_npus(name)))


def _for_npus(name: str) -> Iterable[str]:
    """What the file for NPUs may be called: a folder or the file itself is named after the device."""
    for match in _FOR_OTHERS.finditer(name):
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
