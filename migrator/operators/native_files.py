"""The C++ and CUDA files of a project, read for what they define."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from migrator.operators.native import NativeFile, mentions_cuda, scan_native
from migrator.operators.native_names import is_native
from migrator.processes import processes_for, spread

MAX_BYTES = 4 * 2**20


def read_native(files: Iterable[tuple[str, Path]], jobs: int | None = None) -> list[NativeFile]:
    """What those of ``files`` (name inside the project, path) define that are C++ or CUDA by their names.

    Empty where none has to do with CUDA or is bound for Python. What cannot be read or is larger than
    MAX_BYTES is left out; it is not CUDA sources that are that large. ``jobs`` is the number of processes,
    None for as many as are worth it.
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
    processes = processes_for(sum(map(len, texts.values())), jobs)
    return list(spread(list(texts.items()), processes, _scan, _start, (), _scan_some))


def _scan(item: tuple[str, str]) -> NativeFile:
    return scan_native(*item)


def _scan_some(items: Sequence[tuple[str, str]]) -> list[NativeFile]:
    return [scan_native(name, text) for name, text in items]


def _start() -> None:
    """A process that reads files has nothing to know before."""
