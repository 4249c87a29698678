"""What the files of a lint run have to tell each other, read once and kept in the cache."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

from migrator.lint.cache import Cache, digest
from migrator.lint.document import document
from migrator.lint.files import Target, name_in_project
from migrator.lint.texts import Texts
from migrator.sources.errors import Unreadable

if TYPE_CHECKING:
    from migrator.engine.project import Project

# Without one of these a file defines nothing that another file has to know.
_MAY_TELL = (b"cuda", b"CUDAExtension", b"cpp_extension", b"OpBuilder", b".cu")


class Facts:
    """The facts of all files: ``add`` each Python file, then ask for the ``key`` and the ``project``.

    ``native`` are the C++ and CUDA files, by their names inside the project; ``jobs`` is the number of
    processes that read them, None for as many as are worth it.
    """

    def __init__(
        self, cache: Cache, texts: Texts, native: Sequence[tuple[str, Path]], jobs: Optional[int]
    ) -> None:
        self._cache = cache
        self._texts = texts
        self._native = native
        self._jobs = jobs
        self._classes: list[tuple[str, list[Any]]] = []
        self._building: list[tuple[Target, bytes]] = []
        self._project: Optional[Project] = None
        self._packed: Optional[list[Any]] = None

    def add(self, target: Target, data: bytes, content: bytes) -> None:
        """Learn from a Python file; ``content`` is the digest of its data. Raises Unreadable."""
        if not any(word in data for word in _MAY_TELL):
            return
        key = digest(b"facts", target.place.suffix.encode(), content)
        known = self._cache.get(key)
        if known is None:
            known = _facts_of(document(data, target.path).text)
            self._cache.put(key, known)
        rows, builds = known
        if rows:
            self._classes.append((name_in_project(target), rows))
        if builds:
            self._building.append((target, content))

    def key(self) -> bytes:
        """A digest of all that one file can know of the others."""
        parts = [self._classes, self._operators()]
        return digest(json.dumps(parts).encode("ascii"))

    def _operators(self) -> list[Any]:
        """The CUDA operators as the cache keeps them, empty without any."""
        if self._packed is None:
            self._packed = self._read_operators() if self._native or self._building else []
        return self._packed

    def _read_operators(self) -> list[Any]:
        parts = []
        for name, place in self._native:
            with suppress(OSError):
                parts += [name, digest(place.read_bytes()).hex()]
        for target, content in self._building:
            parts += [name_in_project(target), content.hex()]
        key = digest(b"operators", json.dumps(parts).encode("ascii"))
        known = self._cache.get(key)
        if known is None:
            from migrator.lint.operators import read_operators

            known = read_operators(
                self._native, [self._text(target) for target, _ in self._building], self._jobs
            )
            self._cache.put(key, known)
            known = json.loads(json.dumps(known))  # as it is found in the cache
        return list(known)

    def _text(self, target: Target) -> tuple[str, str]:
        try:
            return name_in_project(target), document(self._texts.data(target), target.path).text
        except Unreadable:  # it was there a moment ago
            return name_in_project(target), ""

    def project(self) -> Project:
        """What one file has to know of the others."""
        from migrator.engine.project import ClassFacts, Project

        if self._project is None:
            classes = tuple(
                ClassFacts(file, name, tuple(bases), frozenset(methods), frozenset(stored), moves)
                for file, rows in self._classes
                for name, bases, methods, stored, moves in rows
            )
            self._project = Project(classes)
            if self._operators():
                from migrator.lint.operators import unpack

                self._project = Project(classes, unpack(self._operators()))
        return self._project


def _facts_of(text: str) -> list[Any]:
    """The classes of a file, and whether it may build extensions."""
    from migrator.engine.project import scan_classes
    from migrator.operators.extensions import may_build

    # The file's name is put in again when they are used: the content alone decides them.
    rows = [
        [f.name, list(f.bases), sorted(f.methods), sorted(f.stored), f.moves_tensors]
        for f in scan_classes("", text)
    ]
    return [rows, may_build(text)]
