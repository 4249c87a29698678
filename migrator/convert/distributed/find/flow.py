"""Where the values of some expressions go: the names that hold what comes of them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from migrator.convert.program import File, Program
from migrator.convert.syntax import dotted, parameters, stored_below
from migrator.convert.values import definition_of
from migrator.names.tree import FUNCTIONS, arguments_of

Nodes = Sequence[tuple[File, Any]]
Name = tuple[int, str]  # the id of its function, which is None at a file's margin; 0 for attributes of self

_MOVES = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.NamedExpr, ast.For, ast.comprehension, ast.Call)


def key(file: File, node: Any) -> Name:
    """The name that a node stands for, with its scope."""
    text = dotted(node.value if isinstance(node, ast.Subscript) else node)
    return (0 if text.startswith("self.") else id(file.function_of(node)), text)


def holds(file: File, node: ast.AST, seeds: Iterable[int], names: Iterable[Name]) -> bool:
    """Whether an expression holds one of some others, or of some names."""
    for one in ast.walk(node):
        if id(one) in seeds:
            return True
        if isinstance(one, (ast.Name, ast.Attribute)) and dotted(one):
            scope = file.function_of(one)
            while True:
                if (id(scope), dotted(one)) in names or (0, dotted(one)) in names:
                    return True
                if scope is None:
                    break
                scope = file.function_of(scope)
    return False


def fed(program: Program, inside: Nodes, seeds: frozenset[int], names: Iterable[Name]) -> frozenset[Name]:
    """The names that hold what comes from some expressions and names."""
    known = set(names)
    moves = [(file, node) for file, node in inside if isinstance(node, _MOVES)]
    count = -1
    while count != len(known):
        count = len(known)
        for file, node in moves:
            known.update(_moved(program, file, node, seeds, known))
    return frozenset(known)


def _moved(
    program: Program, file: File, node: Any, seeds: frozenset[int], known: set[Name]
) -> Iterator[Name]:
    if isinstance(node, ast.Call):
        if not any(holds(file, one, seeds, known) for one in arguments_of(node)):
            return
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("append", "extend"):
            yield key(file, node.func.value)
        found = definition_of(program, file, node)
        if found and isinstance(found[1], FUNCTIONS):
            stars = any(isinstance(one, ast.Starred) for one in node.args)
            for name in parameters(found[1]):
                value = file.argument(node, found[1], name)
                if (value is not None and holds(file, value, seeds, known)) or (value is None and stars):
                    yield id(found[1]), name
        return
    value = node.iter if isinstance(node, (ast.For, ast.comprehension)) else getattr(node, "value", None)
    targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
    if value is not None and holds(file, value, seeds, known):
        for target in filter(None, targets):
            yield from (key(file, one) for one in stored_below(target))
