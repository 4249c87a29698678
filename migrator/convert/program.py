"""A program: the script that is started, and the project's files that it imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from migrator.convert.syntax import Definition, Value, dotted, is_stored
from migrator.names.index import ModuleIndex
from migrator.names.outline import Outline
from migrator.names.tree import FUNCTIONS, Function, argument_of, children, walk
from migrator.project.definitions import Definitions


@dataclass(frozen=True, eq=False)
class File:
    """One file. ``imports``: the names that its imports bind, with the file and the name there.

    ``parents``: what each node is part of, in all files of its program.
    ``by_kind``: its nodes, in the order of the lines; ``stores``: the names and attributes that it sets, each
    behind the function around, None at the margin; ``defined``: its functions and classes by name, without
    methods.
    """

    name: str
    index: ModuleIndex
    parents: dict[ast.AST, ast.AST] = field(default_factory=dict)
    imports: dict[str, tuple[str, str]] = field(default_factory=dict)
    by_kind: dict[type, list[Any]] = field(default_factory=dict)
    stores: dict[tuple[Function | None, str], list[Any]] = field(default_factory=dict)
    defined: dict[str, list[Any]] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The file's text."""
        return self.index.text

    def parent(self, node: Any) -> Any:
        """What a node is part of; None for the module."""
        return self.parents.get(node)

    def above(self, node: ast.AST) -> Iterator[tuple[Any, Any]]:
        """What a node is in, from the inside out, each behind its part that holds the node."""
        child, up = node, self.parent(node)
        while up is not None:
            yield child, up
            child, up = up, self.parent(up)

    def function_of(self, node: ast.AST) -> Any:
        """The function around a node, None at the margin; around a parameter's default, the outer one."""
        ways = self.above(node)
        return next((up for child, up in ways if isinstance(up, FUNCTIONS) and child in up.body), None)

    def class_of(self, function: Function | None) -> ast.ClassDef | None:
        """The class whose method a function is."""
        owner = self.parent(function)
        return owner if isinstance(owner, ast.ClassDef) else None

    def taker_of(self, node: ast.AST) -> Any:
        """What a node is given to: a call, where it is one of its arguments."""
        up = self.parent(node)
        return self.parent(up) if isinstance(up, ast.keyword) else up

    def is_alone(self, statement: ast.stmt) -> bool:
        """Whether nothing else stands in a statement's body around it."""
        return len(getattr(self.parent(statement), "body", [])) == 1

    def stored_value(self, node: Any) -> Value:
        """What an assignment gives to the node that it stores to, and the place in a tuple or -1."""
        up = self.parent(node)
        if isinstance(up, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and up.value is not node:
            return up.value, -1
        if isinstance(up, (ast.Tuple, ast.List)) and isinstance(self.parent(up), ast.Assign):
            return self.parent(up).value, up.elts.index(node)
        return None, -1

    def argument(self, call: ast.Call, function: Any, name: str) -> Any:
        """What a call gives to a parameter; None where it gives nothing, or that cannot be told."""
        given = argument_of(call, name)
        if given is not None:
            return given
        names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
        static = any(dotted(one) == "staticmethod" for one in function.decorator_list)
        names = names[1:] if self.class_of(function) and not static else names
        if name in names and names.index(name) < len(call.args):
            before = call.args[: names.index(name) + 1]
            if not any(isinstance(one, ast.Starred) for one in before):
                return before[-1]
        return None

    def yields(self, function: Any) -> list[ast.Yield]:
        """The ``yield`` expressions of a function: what makes it a generator."""
        every = (one for one in ast.walk(function) if isinstance(one, ast.Yield))
        return [one for one in every if self.function_of(one) is function]

    def nodes(self, *kinds: type) -> list[Any]:
        """The nodes of these kinds, in the order of the text's lines."""
        found = [node for kind in kinds for node in self.by_kind.get(kind, ())]
        return found if len(kinds) == 1 else sorted(found, key=_place_in_text)

    def called(self, call: ast.Call) -> str:
        """The full name of what a call calls, through import aliases; empty where it is not known."""
        return self.index.qualified_name(call.func)

    def bindings(self, function: Function | None, name: str) -> list[Value]:
        """The values that a scope's assignments give to a name; the scope None is the file's margin."""
        return [self.stored_value(node) for node in self.stores.get((function, name), ())]

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


Defined = tuple[File, Definition]


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
    found: dict[int, Defined | None] = field(default_factory=dict)
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
    for node in walk(index.tree):
        if hasattr(node, "lineno"):
            file.by_kind.setdefault(type(node), []).append(node)
        for child in children(node):
            file.parents[child] = node
    for nodes in file.by_kind.values():
        nodes.sort(key=_place_in_text)
    for node in file.nodes(ast.Name, ast.Attribute):
        if is_stored(node):
            file.stores.setdefault((file.function_of(node), dotted(node)), []).append(node)
    for node in file.nodes(*FUNCTIONS, ast.ClassDef):
        if not isinstance(file.parent(node), ast.ClassDef):
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
