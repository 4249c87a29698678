"""The C++ and CUDA files of a project, read for what they define."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from migrator.operators.native import NativeFile, mentions_cuda, scan_native
from migrator.operators.native_names import is_native

MAX_BYTES = 4 * 2**20


def read_native(files: Iterable[tuple[str, Path]]) -> list[NativeFile]:
    """What those of ``files`` (name inside the project, path) define that are C++ or CUDA by their names.

    Empty where none has to do with CUDA or is bound for Python. What cannot be read or is larger than
    MAX_BYTES is left out; it is not CUDA sources that are that large.
    """
    texts = {}
    for name, path in files:
        if is_native(name):
            try:
                if path.stat().st_size <= MAX_BYTES:
                    texts[name] = path.read_bytes().decode("latin-1")
            except OSError:
                continue
    if not any(map(mentions_cuda, texts.values())):
        return []
    return [scan_native(name, text) for name, text in texts.items()]
