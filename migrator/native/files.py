"""Which files are C, C++ or CUDA, by their names, and those of a project to read for what they define."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

CUDA_SUFFIXES = frozenset({".cu", ".cuh"})
NATIVE_SUFFIXES = CUDA_SUFFIXES | {".cpp", ".cc", ".cxx", ".c", ".h", ".hpp", ".hh", ".inl"}
MAX_BYTES = 4 * 2**20


def is_cuda(name: str) -> bool:
    """Whether a file's name says CUDA."""
    return name.endswith(tuple(CUDA_SUFFIXES))


def is_native(name: str) -> bool:
    """Whether a file's name says C, C++ or CUDA."""
    return "." + name.rpartition(".")[2].lower() in NATIVE_SUFFIXES


def native_bytes(files: Iterable[tuple[str, Path]]) -> dict[str, bytes]:
    """The content of those of ``files`` (name inside the project, path) that are C++ or CUDA by their names.

    What cannot be read or is larger than MAX_BYTES is left out; it is not CUDA sources that are that large.
    """
    found = {}
    for name, path in files:
        if is_native(name):
            try:
                if path.stat().st_size <= MAX_BYTES:
                    found[name] = path.read_bytes()
            except OSError:
                continue
    return found
