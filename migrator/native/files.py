"""Which files are C, C++ or CUDA, by their names, and those of a project to read for what they define."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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


def texts_to_scan(native: Mapping[str, bytes]) -> list[tuple[str, str]]:
    """The files as texts, by name; none where no file has to do with CUDA or is bound for Python."""
    from migrator.native.functions import mentions_cuda

    texts = [(name, data.decode("latin-1")) for name, data in native.items()]
    return texts if any(mentions_cuda(text) for _, text in texts) else []
