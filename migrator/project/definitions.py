"""What an expression is, asked of the project's other files. jedi finds definitions, ``values`` reads them.

jedi only reads sources: it is given no interpreter to start, no packages but the project's and those of
``paths``, and loads no compiled modules. It is imported when the first question comes.
"""

from __future__ import annotations

import ast
import logging
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache, lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Union

from migrator.files.errors import Unreadable
from migrator.files.source import read
from migrator.light import Frozen
from migrator.names.index import ModuleIndex, parsed
from migrator.names.what_is import CLASS, OTHER, TENSOR, UNKNOWN, Value, is_tensor_class, returned, what_is

if TYPE_CHECKING:
    import jedi
    from jedi.api.classes import Name

_LOG = logging.getLogger("npumigrate")

_Node = Union[ast.expr, ast.alias]


class Definitions(Frozen):
    """The project in the folder ``root``; ``paths`` are more folders in which imports are looked up."""

    root: Path
    paths: tuple[Path, ...] = ()

    def kind_of(self, file: str, index: ModuleIndex, node: _Node) -> Value:
        """What a node of a file (its name inside the project) is, as ``what_is`` answers."""
        answers = {self._defined(definition, node) for definition in self._goto(file, index, node)}
        return answers.pop() if len(answers) == 1 else Value(UNKNOWN)

    def places(self, file: str, index: ModuleIndex, node: _Node) -> list[tuple[str, int, int]]:
        """Where the project defines what a node names: file, line and column (of a module: 0, 0)."""
        found = []
        for definition in self._goto(file, index, node):
            path = definition.module_path
            if path is not None and self.root in Path(path).parents:
                name = Path(path).relative_to(self.root).as_posix()
                found.append((name, definition.line or 0, definition.column or 0))
        return found

    def _goto(self, file: str, index: ModuleIndex, node: _Node) -> list[Name]:
        place = _place(index, node)
        if place is None:
            return []
        # Another process may be writing what jedi keeps on the disk, so a failure is asked again without it.
        for kept in (nullcontext(), _nothing_kept()):
            try:
                with kept:
                    return list(_script(index.text, self.root / file, self).goto(*place, follow_imports=True))
            except Exception as error:  # jedi fails on some sources; that answers nothing
                _LOG.debug("%s:%d: jedi: %r", file, place[0], error)
        return []

    def _defined(self, definition: Name, node: _Node) -> Value:
        """What the definition that jedi found says."""
        if definition.type == "module":
            return Value(OTHER)
        path, line = definition.module_path, definition.line
        if path is None or line is None:
            return Value(UNKNOWN)
        index = _index(Path(path))
        if index is None:
            return Value(UNKNOWN)
        # As jedi, ast gives the line of ``def`` and ``class``, not that of a decorator.
        statement = next((s for s in index.statements if getattr(s, "lineno", 0) == line), None)
        called = isinstance(node, ast.Call)
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return returned(index, statement) if called else Value(OTHER)
        if isinstance(statement, ast.ClassDef):
            return Value(TENSOR if called and is_tensor_class(index, statement) else CLASS, statement.name)
        if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None and not called:
            index.expand(statement)
            return what_is(index, statement.value)
        return Value(UNKNOWN)


@contextmanager
def _nothing_kept() -> Iterator[None]:
    """In it jedi reads nothing that it, or another process, keeps on the disk."""
    import jedi

    usual = jedi.settings.cache_directory
    _script.cache_clear()
    try:
        with TemporaryDirectory() as folder:
            jedi.settings.cache_directory = folder
            yield
    finally:
        jedi.settings.cache_directory = usual


@lru_cache(maxsize=2)
def _script(text: str, path: Path, definitions: Definitions) -> jedi.Script:
    import jedi

    project, environment = _jedi_project(definitions)
    return jedi.Script(text, path=path, project=project, environment=environment)


@cache
def _jedi_project(definitions: Definitions) -> tuple[jedi.Project, jedi.InterpreterEnvironment]:
    import jedi

    root, folders = definitions.root, [str(folder) for folder in (definitions.root, *definitions.paths)]
    project = jedi.Project(root, sys_path=folders, smart_sys_path=False, load_unsafe_extensions=False)
    return project, jedi.InterpreterEnvironment()


@lru_cache(maxsize=64)
def _index(path: Path) -> ModuleIndex | None:
    try:
        return parsed(read(path, path.name).text, ())
    except Unreadable:
        return None


def _place(index: ModuleIndex, node: _Node) -> tuple[int, int] | None:
    """Line and column of the name that stands for a node."""
    if isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute):
        offset = index.end(node) - len(node.attr.encode("utf-8"))
    elif isinstance(node, (ast.Name, ast.alias)):
        offset = index.start(node)
    else:
        return None
    return index.line_of(offset), index.column_of(offset) - 1
