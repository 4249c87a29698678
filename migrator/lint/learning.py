"""What single files tell the others, read in this process or in several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

from migrator.files.document import document
from migrator.files.errors import Unreadable
from migrator.files.source import read_bytes
from migrator.native.files import scan_text, texts_to_scan
from migrator.project.project import FileFacts, scan_file
from migrator.run.cache import digest
from migrator.run.processes import processes_for, spread_plain

if TYPE_CHECKING:
    from migrator.native.functions import NativeFile


@dataclass(frozen=True)
class PythonFile:
    """A Python file or notebook: ``data`` is its content where that is not read from the disk."""

    path: str
    place: Path
    name: str
    data: Optional[bytes]


@dataclass(frozen=True)
class Told:
    """What a Python file tells, and the digest of the content that told it: it may just have changed."""

    content: bytes
    facts: FileFacts

    @property
    def rows(self) -> list[Any]:
        """The classes in a form that JSON can hold, without the file's name: its content decides them."""
        return [
            [item.name, list(item.bases), sorted(item.methods), sorted(item.stored), item.moves_tensors]
            for item in self.facts.classes
        ]


_Native = tuple[str, str]


def learn(
    python: Sequence[PythonFile], native: Mapping[str, bytes], size: int, processes: Optional[int]
) -> tuple[list[Told], list[NativeFile]]:
    """What each file tells, in their order; ``size`` is how many bytes they have.

    ``native`` are C++ and CUDA files by their names: nothing is read of them where none has to do with
    CUDA. ``processes`` is their number, None for as many as are worth it.
    """
    every: list[PythonFile | _Native] = [*texts_to_scan(native), *python]
    done = spread_plain(every, processes_for(size, processes), _learn)
    told: list[Told] = []
    read: list[NativeFile] = []
    for item in done:
        if isinstance(item, Told):
            told.append(item)
        else:
            read.append(item)
    return told, read


def _learn(file: PythonFile | _Native) -> Told | NativeFile:
    if isinstance(file, tuple):
        return scan_text(file)
    data = b""
    try:
        data = read_bytes(file.place) if file.data is None else file.data
        text = document(data, file.path).text
    except Unreadable:  # that is told when its turn comes to be checked
        return Told(digest(data), FileFacts())
    return Told(digest(data), scan_file(file.name, text) or FileFacts())
