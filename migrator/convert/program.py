"""A program: the script that is started, and the project's files that it imports."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

from migrator.convert.syntax import Definition, Value, dotted, function_of, is_stored, parent, stored_value
from migrator.names.index import ModuleIndex
from migrator.names.outline import Outline
from migrator.names.tree import FUNCTIONS, Function, children, walk
from migrator.project.definitions import Definitions


@dataclass(frozen=True, eq=False)
class File:
    """One file. ``imports``: the names that its imports bind, with the file and the name there.

    ``by_kind``: its nodes, in the order of the lines; ``stores``: the names and attributes that it sets, each
    behind the function around, None at the margin; ``defined``: its functions and classes by name, without
    methods.
    """

    name: str
    index: ModuleIndex
    imports: dict[str, tuple[str, str]] = field(default_factory=dict)
    by_kind: dict[type, list[Any]] = field(default_factory=dict)
    stores: dict[tuple[Function | None, str], list[Any]] = field(default_factory=dict)
    defined: dict[str, list[Any]] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The file's text."""
        return self.index.text

    def nodes(self, *kinds: type) -> list[Any]:
        """The nodes of these kinds, in the order of the text's lines."""
        found = [node for kind in kinds for node in self.by_kind.get(kind, ())]
        return found if len(kinds) == 1 else sorted(found, key=_place_in_text)

    def called(self, call: ast.Call) -> str:
        """The full name of what a call calls, through import aliases; empty where it is not known."""
        return self.index.qualified_name(call.func)

    def bindings(self, function: Function | None, name: str) -> list[Value]:
        """The values that a scope's assignments give to a name; the scope None is the file's margin."""
        return [stored_value(node) for node in self.stores.get((function, name), ())]

    def only_value(self, function: Function | None, name: str) -> ast.expr | None:
        """The value of a name that a scope sets once, and plainly."""
        bound = self.bindings(function, name)
        return bound[0][0] if len(bound) == 1 and bound[0][1] < 0 else None

    def on_self(self, owner: ast.ClassDef, attribute: str) -> list[Value]:
        """The same for ``self.attribute`` in a class."""
        methods = (node for node in owner.body if isinstance(node, FUNCTIONS))
        return [value for method in methods for value in self.bindings(method, f"self.{attribute}")]

    def own_line(self, statement: Any) -> bool:
        """Whether a statement stands on lines of its own, so that others can be put around it."""
        before, behind = self.index.lines.beside(self.index.span(statement))
        compound = isinstance(getattr(statement, "body", None), list)
        return not before.strip() and (compound or not behind.strip().startswith(b";"))


@dataclass(frozen=True)
class Program:
    """The files of a program, the entry first. ``calls``: where each function and class of it is called.

    ``families``: for each class those of the project that it inherits from, and those that inherit from it.
    ``elsewhere`` knows more of names than what is read here; ``found`` is what it said of calls. ``mixed``:
    the ids of functions that are called both to train and not to, or for which that is not known.
    """

    entry: File
    files: dict[str, File]
    calls: dict[int, list[tuple[File, ast.Call]]] = field(default_factory=dict)
    families: dict[int, list[tuple[File, ast.ClassDef]]] = field(default_factory=dict)
    elsewhere: Definitions | None = None
    found: dict[int, tuple[File, Definition] | None] = field(default_factory=dict)
    mixed: frozenset[int] = frozenset()

    def family(self, file: File, owner: ast.ClassDef) -> list[tuple[File, ast.ClassDef]]:
        """A class, those that it inherits from, and those that inherit from it."""
        return [(file, owner), *self.families.get(id(owner), ())]

    def nodes(self, *kinds: type) -> list[tuple[File, Any]]:
        """The nodes of these kinds in all files."""
        return [(file, node) for file in self.files.values() for node in file.nodes(*kinds)]


def read_file(name: str, text: str) -> File:
    """A file with what its nodes are part of. Raises what parsing does."""
    index = ModuleIndex(text, (), Outline(text))
    for statement in index.statements:
        index.expand(statement)
    _put_fields(index)
    file = File(name, index)
    child: Any
    for node in walk(index.tree):
        if hasattr(node, "lineno"):
            file.by_kind.setdefault(type(node), []).append(node)
        for child in children(node):
            child.parent = node
    for nodes in file.by_kind.values():
        nodes.sort(key=_place_in_text)
    for node in file.nodes(ast.Name, ast.Attribute):
        if is_stored(node):
            file.stores.setdefault((function_of(node), dotted(node)), []).append(node)
    for node in file.nodes(*FUNCTIONS, ast.ClassDef):
        if not isinstance(parent(node), ast.ClassDef):
            file.defined.setdefault(node.name, []).append(node)
    return file


def _place_in_text(node: Any) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _put_fields(index: ModuleIndex) -> None:
    """Put the fields of f-strings, at their places in the text, where ``ast`` has its own."""
    for text in [node for node in index.strings if isinstance(node, ast.JoinedStr)]:
        values: list[Any] = []
        for part in index.parts(text):
            if part.expression is None:
                values.append(ast.copy_location(ast.Constant(part.raw), text))
            else:
                values.append(ast.copy_location(ast.FormattedValue(part.expression, -1, None), text))
                for node in ast.walk(part.expression):
                    if isinstance(node, ast.expr):
                        start, end = index.span(node)
                        node.lineno, node.col_offset = _place(index, start)
                        node.end_lineno, node.end_col_offset = _place(index, end)
        text.values = values


def _place(index: ModuleIndex, offset: int) -> tuple[int, int]:
    line = index.line_of(offset)
    return line, offset - index.line_span(line, line)[0]
