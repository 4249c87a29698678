"""Which files are C, C++ or CUDA, by their names."""

from __future__ import annotations

CUDA_SUFFIXES = frozenset({".cu", ".cuh"})
NATIVE_SUFFIXES = CUDA_SUFFIXES | {".cpp", ".cc", ".cxx", ".c", ".h", ".hpp", ".hh", ".inl"}


def is_cuda(name: str) -> bool:
    """Whether a file's name says CUDA."""
    return name.endswith(tuple(CUDA_SUFFIXES))


def is_native(name: str) -> bool:
    """Whether a file's name says C, C++ or CUDA."""
    return "." + name.rpartition(".")[2].lower() in NATIVE_SUFFIXES
