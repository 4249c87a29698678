"""What the files of a lint run have to tell each other, read once and kept in the cache."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

from migrator.lint.files import Target, name_in_project
from migrator.lint.texts import Texts
from migrator.run.cache import Cache, digest

if TYPE_CHECKING:
    from migrator.native.functions import NativeFile
    from migrator.project.project import FileFacts, Project

# Without one of these a file tells nothing that another one has to know: of a class with a CUDA member, or of
# an extension that it builds (CUDAExtension, cpp_extension, an OpBuilder, a source file).
_MAY_TELL = (b"cuda", b"xtension", b"OpBuilder", b".cu")
# .cu" also as it stands in a notebook.
_MAY_BUILD = (b"CUDAExtension", b"cpp_extension", b"OpBuilder", b"cuda_sources", b'.cu"', b".cu'", b'.cu\\"')


@dataclass
class _File:
    """A Python file that may tell something: ``rows`` are its classes, None until they are known."""

    target: Target
    content: bytes
    size: int
    builds: bool
    rows: Optional[list[Any]] = None

    @property
    def name(self) -> str:
        return name_in_project(self.target)

    def key(self, content: bytes) -> bytes:
        return digest(b"facts", self.target.place.suffix.encode(), content)


class Facts:
    """The facts of all files: ``add`` each Python file, then ask for the ``key`` and the ``project``.

    ``native`` are the C++ and CUDA files, by their names inside the project; ``jobs`` is the number of
    processes that read the files, None for as many as are worth it.
    """

    def __init__(
        self, cache: Cache, texts: Texts, native: Sequence[tuple[str, Path]], jobs: Optional[int]
    ) -> None:
        self._cache = cache
        self._texts = texts
        self._native = native
        self._jobs = jobs
        self._files: list[_File] = []
        self._packages: list[str] = []
        self._known: Optional[tuple[list[Any], list[Any]]] = None
        self._project: Optional[Project] = None

    def add(self, target: Target, data: bytes, content: bytes) -> None:
        """Remember a Python file; ``content`` is the digest of its data."""
        if target.path.endswith("__init__.py"):
            self._packages.append(name_in_project(target))
        if any(word in data for word in _MAY_TELL):
            builds = any(word in data for word in _MAY_BUILD)
            self._files.append(_File(target, content, len(data), builds))

    def key(self) -> bytes:
        """A digest of all that one file can know of the others."""
        return digest(json.dumps([*self._all(), self._packages]).encode("ascii"))

    def project(self) -> Project:
        """What one file has to know of the others."""
        from migrator.project.project import ClassFacts, Project, packages_of

        if self._project is None:
            rows, operators = self._all()
            classes = tuple(
                ClassFacts(file, name, tuple(bases), frozenset(methods), frozenset(stored), moves)
                for file, name, bases, methods, stored, moves in rows
            )
            self._project = Project(classes, packages=packages_of(self._packages))
            if operators:
                from migrator.lint.operators import unpack

                self._project = replace(self._project, operators=unpack(operators))
        return self._project

    def _all(self) -> tuple[list[Any], list[Any]]:
        """The classes, and the CUDA operators (empty without any), as the cache keeps them."""
        if self._known is None:
            operators = self._look_up()
            self._known = [[file.name, *row] for file in self._files for row in file.rows or ()], operators
        return self._known

    def _look_up(self) -> list[Any]:
        """The operators; and every file gets its rows."""
        for file in self._files:
            file.rows = self._cache.get(file.key(file.content))
        native: dict[str, bytes] = {}
        if self._native:
            from migrator.native.files import native_bytes

            native = native_bytes(self._native)
        building = [file for file in self._files if file.builds]
        key = b""
        operators: Optional[list[Any]] = []
        if native or building:
            parts = [[name, digest(data).hex()] for name, data in native.items()]
            parts += [[file.name, file.content.hex()] for file in building]
            key = digest(b"operators", json.dumps(parts).encode("ascii"))
            operators = self._cache.get(key)
        if operators is not None:
            self._read([file for file in self._files if file.rows is None], {})
            return operators
        facts, read, unchanged = self._read([f for f in self._files if f.rows is None or f.builds], native)
        from migrator.lint.operators import pack
        from migrator.project.project import merge_facts

        operators = pack(merge_facts(facts, read).operators)
        if unchanged:
            self._cache.put(key, operators)
        return list(json.loads(json.dumps(operators)))  # as it is found in the cache

    def _read(
        self, files: list[_File], native: Mapping[str, bytes]
    ) -> tuple[list[FileFacts], list[NativeFile], bool]:
        """Read the files and give them their rows.

        The result: what the files tell, and whether none has changed since it was added.
        """
        if not files and not native:
            return [], [], True
        from migrator.lint.learning import PythonFile, learn

        size = sum(file.size for file in files) + sum(map(len, native.values()))
        given = self._texts.given
        python = [
            PythonFile(file.target.path, file.target.place, file.name, given.get(file.target.place))
            for file in files
        ]
        told, read = learn(python, native, size, self._jobs)
        for file, item in zip(files, told):
            file.rows = item.rows
            self._cache.put(file.key(item.content), item.rows)
        unchanged = all(item.content == file.content for file, item in zip(files, told))
        return [item.facts for item in told], read, unchanged
