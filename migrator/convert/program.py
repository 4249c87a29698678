"""A program: the script that is started, and the project's files that it imports."""

from __future__ import annotations

import ast
import posixpath
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Optional

from migrator.convert.syntax import FUNCTIONS, Definition, File, stored_value
from migrator.convert.values import UnknownError, definition_of, origins_of
from migrator.names.index import ModuleIndex, identifiers
from migrator.names.tree import children, walk
from migrator.project.definitions import Definitions
from migrator.project.distributed_use import is_distributed

_OTHERS = {
    "torch",
    "torchvision",
    "torchaudio",
    "numpy",
    "scipy",
    "PIL",
    *getattr(sys, "stdlib_module_names", ()),
}


@dataclass(frozen=True)
class Program:
    """The files of a program, the entry first. ``calls``: where each function and class of it is called.

    ``families``: for each class those of the project that it inherits from, and those that inherit from it.
    ``elsewhere`` knows more of names than what is read here; ``found`` is what it said of calls.
    """

    entry: File
    files: dict[str, File]
    calls: dict[int, list[tuple[File, ast.Call]]] = field(default_factory=dict)
    families: dict[int, list[tuple[File, ast.ClassDef]]] = field(default_factory=dict)
    elsewhere: Definitions | None = None
    found: dict[int, tuple[File, Definition] | None] = field(default_factory=dict)

    def definition(self, file: File, call: ast.Call) -> tuple[File, Definition] | None:
        """The project's own function, class or method that a call calls."""
        return definition_of(self, file, call)

    def family(self, file: File, owner: ast.ClassDef) -> list[tuple[File, ast.ClassDef]]:
        """A class, those that it inherits from, and those that inherit from it."""
        return [(file, owner), *self.families.get(id(owner), ())]

    def stored(self, file: File, node: Any) -> list[tuple[File, Any, int]]:
        """The values that something named has by ``elsewhere``, each with its place in a tuple, or -1."""
        found: list[tuple[File, Any, int]] = []
        places = self.elsewhere.places(file.name, file.index, node) if self.elsewhere else []
        for name, line, column in places:
            where = self.files.get(name)
            for one in where.nodes(ast.Name, ast.Attribute) if where else ():
                at = (
                    (one.end_col_offset or 0) - len(one.attr)
                    if isinstance(one, ast.Attribute)
                    else one.col_offset
                )
                if (one.lineno, at) == (line, column) and one is not node and where is not None:
                    found.append((where, *stored_value(one)))
        return found

    def origins(self, file: File, node: Any) -> list[tuple[File, Any]]:
        """The expressions from which a value comes, through names, parameters, attributes and returns.

        Empty where one of the ways to it is not known.
        """
        try:
            return list(origins_of(self, file, node))
        except UnknownError:
            return []


class AlreadyDistributedError(Exception):
    """A program that is for many cards."""


def load(
    entry: str,
    read: Callable[[str], Optional[str]],
    elsewhere: Definitions | None = None,
    more: Sequence[str] = (),
    for_one_card: bool = True,
) -> Program:
    """The program of the file ``entry``; ``read`` gives the text of a file, None where there is none.

    ``elsewhere`` is asked where the names say too little, ``more`` are other files that are started. Raises
    SyntaxError or ValueError where the entry cannot be parsed (other such files are left out),
    AlreadyDistributedError where it has to be ``for_one_card``.
    """
    files: dict[str, File] = {}
    waiting = [entry, *more]
    while waiting:
        name = waiting.pop(0)
        text = read(name)
        if name in files or text is None:
            continue
        if for_one_card and is_distributed(text):
            raise AlreadyDistributedError
        try:
            index = ModuleIndex(text, identifiers(text))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            if name == entry:
                raise
            continue
        for statement in index.statements:
            index.expand(statement)
        _put_fields(index)
        _put_parents(index.tree)
        file = File(name, text, index, {})
        files[name] = file
        started = file.name if file.name in more else entry
        for node, bound, module, attribute in _imported(file.nodes(ast.Import, ast.ImportFrom)):
            found = _place(file.name, started, module, attribute, read)
            if found is None and elsewhere and module.partition(".")[0] not in _OTHERS:
                places = elsewhere.places(file.name, index, node)
                found = (places[0][0], attribute if places[0][1] else "") if len(places) == 1 else None
            if found:
                waiting.append(found[0])
                if bound != "*":
                    file.imports[bound] = found
    program = Program(files[entry], files, elsewhere=elsewhere)
    _put_families(program)
    names = {node.name for file in files.values() for node in file.nodes(*FUNCTIONS, ast.ClassDef)}
    for file in files.values():
        for call in file.nodes(ast.Call):
            definition = program.definition(file, call)
            if definition is None and elsewhere and _last_name(call) in names:
                definition = program.found[id(call)] = _looked_up(program, file, call)
            if definition:
                program.calls.setdefault(id(definition[1]), []).append((file, call))
    return program


def _put_families(program: Program) -> None:
    """Note for each class its bases, the nearest first, and then what inherits from it."""
    bases: dict[int, list[tuple[File, ast.ClassDef]]] = {}
    classes = [(file, node) for file in program.files.values() for node in file.nodes(ast.ClassDef)]
    for file, owner in classes:
        waiting = [(file, owner)]
        while waiting:
            where, one = waiting.pop(0)
            for base in one.bases:
                call = ast.Call(base, [], [])
                found = definition_of(program, where, call)
                if found and isinstance(found[1], ast.ClassDef):
                    known = bases.setdefault(id(owner), [])
                    if found[1] is not owner and all(found[1] is not each for _, each in known):
                        known.append((found[0], found[1]))
                        waiting.append((found[0], found[1]))
    for _, owner in classes:
        program.families[id(owner)] = list(bases.get(id(owner), ()))
    for file, owner in classes:
        for _, base in bases.get(id(owner), ()):
            program.families[id(base)].append((file, owner))


def _last_name(call: ast.Call) -> str:
    return getattr(call.func, "attr", "") or getattr(call.func, "id", "")


def _looked_up(program: Program, file: File, call: ast.Call) -> tuple[File, Definition] | None:
    """What ``elsewhere`` says that a call calls."""
    assert program.elsewhere is not None
    found = []
    for name, line, _ in program.elsewhere.places(file.name, file.index, call):
        where = program.files.get(name)
        for node in where.nodes(*FUNCTIONS, ast.ClassDef) if where else ():
            if node.lineno == line and where is not None:
                found.append((where, node))
    return found[0] if len(found) == 1 else None


def _put_fields(index: ModuleIndex) -> None:
    """Put the fields of f-strings, at their places in the text, where ``ast`` has its own."""
    for text in [node for node in ast.walk(index.tree) if isinstance(node, ast.JoinedStr)]:
        values: list[Any] = []
        for part in index.parts(text):
            if part.expression is None:
                values.append(ast.copy_location(ast.Constant(part.raw), text))
            else:
                values.append(ast.copy_location(ast.FormattedValue(part.expression, -1, None), text))
                for node in ast.walk(part.expression):
                    if isinstance(node, ast.expr):
                        _set_place(index, node)
        text.values = values


def _put_parents(tree: ast.Module) -> None:
    """Note for each node what it is part of."""
    for node in walk(tree):
        for child in children(node):
            child.parent = node


def _set_place(index: ModuleIndex, node: Any) -> None:
    start, end = index.start(node), index.end(node)
    node.lineno, node.col_offset = index.line_of(start), _column(index, start)
    node.end_lineno, node.end_col_offset = index.line_of(end), _column(index, end)


def _column(index: ModuleIndex, offset: int) -> int:
    line = index.line_of(offset)
    return offset - index.line_span(line, line)[0]


def imports_one_of(
    name: str, tree: ast.Module, wanted: Collection[str], read: Callable[[str], Optional[str]]
) -> bool:
    """Whether the file ``name`` imports one of some files of the project."""
    for _, _, module, attribute in _imported(walk(tree)):
        found = _place(name, name, module, attribute, read)
        if found and found[0] in wanted:
            return True
    return False


def _imported(nodes: Iterable[Any]) -> Iterator[tuple[ast.alias, str, str, str]]:
    """What imports among nodes bring: the place, the name that it binds, the module, and the name in that."""
    for node in nodes:
        if not isinstance(node, (ast.Import, ast.ImportFrom)):
            continue
        for alias in node.names:
            if isinstance(node, ast.Import):
                yield alias, (alias.asname or alias.name), alias.name, ""
            else:
                module = "." * node.level + (node.module or "")
                yield alias, (alias.asname or alias.name), module, alias.name if alias.name != "*" else ""


def _place(
    importer: str, entry: str, module: str, attribute: str, read: Callable[[str], Optional[str]]
) -> tuple[str, str] | None:
    """The file, and the name in it, that an import means; None where it is none of the project's."""
    level = len(module) - len(module.lstrip("."))
    if level:
        folders = [posixpath.normpath(posixpath.join(posixpath.dirname(importer), *[".."] * (level - 1)))]
    else:
        folders = list(dict.fromkeys([posixpath.dirname(entry), ""]))
    parts = [part for part in module.lstrip(".").split(".") if part]
    for folder in folders:
        base = posixpath.normpath(posixpath.join(folder, *parts)) if folder or parts else "."
        for name in (f"{base}/{attribute}.py", f"{base}/{attribute}/__init__.py") if attribute else ():
            if read(posixpath.normpath(name)) is not None:
                return posixpath.normpath(name), ""
        for name in (f"{base}.py", posixpath.normpath(f"{base}/__init__.py")):
            if parts and read(name) is not None:
                return name, attribute
    return None
