"""The one model of a project, from its files: each is read once, or known from the cache.

Most runs of lint know all from the cache: what reads files is imported when there is a file to read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

from migrator.files.document import document
from migrator.files.errors import Unreadable
from migrator.files.source import read_bytes
from migrator.run.cache import Cache, digest
from migrator.run.processes import processes_for, spread_plain

if TYPE_CHECKING:
    from migrator.files.discover import Entry
    from migrator.native.model import NativeFile
    from migrator.project.facts import FileFacts
    from migrator.project.operators import Catalog
    from migrator.project.project import Project
    from migrator.project.start import StartFacts

# Without one of these a file tells nothing that another one has to know: of a class with a CUDA member, or of
# an extension that it builds (CUDAExtension, cpp_extension, an OpBuilder, a source file).
_MAY_TELL = (b"cuda", b"xtension", b"OpBuilder", b".cu")
# .cu" also as it stands in a notebook.
_MAY_BUILD = (b"CUDAExtension", b"cpp_extension", b"OpBuilder", b"cuda_sources", b'.cu"', b".cu'", b'.cu\\"')


@dataclass(frozen=True)
class PythonFile:
    """A Python file or notebook: its name inside the project; its ``data`` where that is not on the disk."""

    name: str
    path: Path
    data: Optional[bytes] = None


@dataclass(frozen=True)
class Read:
    """What a Python file tells, and the digest of the content that told it: it may just have changed."""

    content: bytes
    facts: FileFacts
    start: Optional[StartFacts] = None


@dataclass
class _Telling:
    """A Python file that may tell something: ``facts`` as the cache keeps them, None until they are known."""

    file: PythonFile
    content: bytes
    size: int
    builds: bool
    facts: Any = None

    def key(self, content: bytes) -> bytes:
        """Under which the cache keeps what the file tells with this content."""
        name = self.file.name.encode("utf-8", "surrogatepass")
        return digest(b"facts", name, content)


def load_project(entries: Iterable[Entry], jobs: Optional[int], starts: bool = False) -> tuple[Project, int]:
    """The Project of all that is Python, C++ or CUDA, and how many bytes its Python files have.

    ``jobs`` is the number of processes, None for as many as are worth it; with ``starts`` the files tell also
    how programs are started. What cannot be read is left out: it is reported when its turn comes.
    """
    from migrator.native.files import native_bytes
    from migrator.project.project import merge_facts

    every = list(entries)
    python = [PythonFile(entry.name, entry.path) for entry in every if entry.holds_python]
    native = native_bytes((entry.name, entry.path) for entry in every if entry.kind == "file")
    size = sum(_size(file.path) for file in python)
    told, others = read_files(python, native, size + sum(map(len, native.values())), jobs, starts)
    project = merge_facts((item.facts for item in told), others, (entry.name for entry in every))
    return replace(project, starts=tuple(item.start for item in told if item.start)), size


def _size(path: Path) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


class Loader:
    """The project of files whose facts a cache may know: ``add`` each, then ask for ``key`` and ``project``.

    ``native`` are the C++ and CUDA files, by their names inside the project; ``jobs`` is the number of
    processes that read the files, None for as many as are worth it.
    """

    def __init__(self, cache: Cache, native: Sequence[tuple[str, Path]], jobs: Optional[int]) -> None:
        self._cache = cache
        self._native = native
        self._jobs = jobs
        self._files: list[_Telling] = []
        self._packages: list[str] = []
        self._operators: Any = None
        self._project: Optional[Project] = None

    def add(self, file: PythonFile, data: bytes, content: bytes) -> None:
        """Remember a Python file; ``content`` is the digest of its data."""
        if file.name.endswith("__init__.py"):
            self._packages.append(file.name)
        if any(word in data for word in _MAY_TELL):
            builds = any(word in data for word in _MAY_BUILD)
            self._files.append(_Telling(file, content, len(data), builds))

    def key(self) -> bytes:
        """A digest of all that one file can know of the others."""
        self._look_up()
        classes = [file.facts[0] for file in self._files if file.facts[0]]
        return digest(json.dumps([classes, self._operators, self._packages]).encode("ascii"))

    def project(self) -> Project:
        """What one file has to know of the others."""
        if self._project is None:
            from migrator.project.facts import FileFacts
            from migrator.project.operators import Catalog
            from migrator.project.project import Project, classes_of, packages_of
            from migrator.run.json_form import from_json

            self._look_up()
            classes = classes_of(from_json(FileFacts, file.facts) for file in self._files if any(file.facts))
            operators = from_json(Catalog, self._operators) if self._operators else Catalog()
            self._project = Project(classes, operators, packages=packages_of(self._packages))
        return self._project

    def _look_up(self) -> None:
        """Every file gets its facts, and the operators are found (empty without any)."""
        if self._operators is not None:
            return
        for file in self._files:
            file.facts = self._cache.get(file.key(file.content))
        native: dict[str, bytes] = {}
        if self._native:
            from migrator.native.files import native_bytes

            native = native_bytes(self._native)
        building = [file for file in self._files if file.builds]
        unknown = [file for file in self._files if file.facts is None]
        if not native and not building:
            self._read(unknown, {})
            self._operators = []
            return
        parts = [[name, digest(data).hex()] for name, data in native.items()]
        parts += [[file.file.name, file.content.hex()] for file in building]
        key = digest(b"operators", json.dumps(parts).encode("ascii"))
        self._operators = self._cache.get(key)
        if self._operators is not None:
            self._read(unknown, {})
            return
        others, unchanged = self._read(unknown, native)
        from migrator.project.facts import FileFacts
        from migrator.project.project import merge_facts
        from migrator.run.json_form import from_json, to_json

        facts = [from_json(FileFacts, file.facts) for file in building]
        # Only the reports of a migration name the operators of each file, and what load_inline is given.
        catalog = _without_sources(merge_facts(facts, others).operators)
        self._operators = json.loads(json.dumps(to_json(catalog)))  # as it is found in the cache
        if unchanged:
            self._cache.put(key, self._operators)

    def _read(self, files: list[_Telling], native: Mapping[str, bytes]) -> tuple[list[NativeFile], bool]:
        """Read the files, and give them their facts; whether none has changed since it was added."""
        if not files and not native:
            return [], True
        from migrator.run.json_form import to_json

        size = sum(file.size for file in files) + sum(map(len, native.values()))
        told, others = read_files([file.file for file in files], native, size, self._jobs)
        for file, item in zip(files, told):
            file.facts = to_json(item.facts)
            self._cache.put(file.key(item.content), file.facts)
        return others, all(item.content == file.content for file, item in zip(files, told))


def _without_sources(catalog: Catalog) -> Catalog:
    extensions = {place: replace(item, text=None) for place, item in catalog.extensions.items()}
    return replace(catalog, in_file={}, extensions=extensions)


def read_files(
    python: Sequence[PythonFile],
    native: Mapping[str, bytes],
    size: int,
    processes: Optional[int],
    starts: bool = False,
) -> tuple[list[Read], list[NativeFile]]:
    """What each file tells, in their order; ``size`` is how many bytes they have.

    ``native`` are C++ and CUDA files by their names: nothing is read of them where none has to do with
    CUDA. ``processes`` is their number, None for as many as are worth it.
    """
    from migrator.native.files import texts_to_scan

    every: list[PythonFile | tuple[str, str]] = [*texts_to_scan(native), *python]
    done = list(spread_plain(every, processes_for(size, processes), partial(_read_file, starts)))
    told = [item for item in done if isinstance(item, Read)]
    return told, [item for item in done if not isinstance(item, Read)]


def _read_file(starts: bool, file: PythonFile | tuple[str, str]) -> Read | NativeFile:
    if isinstance(file, tuple):
        from migrator.native.functions import scan_native

        return scan_native(*file)
    from migrator.project.facts import FileFacts, scan_file

    data = b""
    try:
        data = read_bytes(file.path) if file.data is None else file.data
        if not starts and not any(word in data for word in _MAY_TELL):
            return Read(digest(data), FileFacts())
        text = document(data, file.name).text
    except Unreadable:  # that is told when its turn comes to be checked
        return Read(digest(data), FileFacts())
    if not starts:
        return Read(digest(data), scan_file(file.name, text))
    from migrator.project.start import scan_start

    return Read(digest(data), scan_file(file.name, text), scan_start(file.name, text))
