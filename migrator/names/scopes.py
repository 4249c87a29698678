"""Scopes, and what binds a name in each."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Union

from migrator.names.tree import Function, Import, Statement, defaults

# Packages with a module named torch.
_OWN_TORCH = frozenset({"horovod", "safetensors", "smdistributed"})
Binder = Union[ast.stmt, ast.expr, ast.arg, ast.ExceptHandler]


class Binding(NamedTuple):
    """One thing that gives a name its meaning.

    ``kind`` is import, assign, param, def, class or other. ``name`` is the
    qualified name of an import, ``value`` the expression of an assignment to
    the bare name, or a parameter's default; ``annotation`` a parameter's.
    """

    kind: str
    node: Binder
    name: str = ""
    value: ast.expr | None = None
    annotation: ast.expr | None = None


class Scope:
    """A module, class or function, with the names that it binds."""

    __slots__ = ("bindings", "node", "outer", "parent", "statements")

    def __init__(self, node: ast.Module | ast.ClassDef | Function, parent: Scope | None) -> None:
        self.node = node
        self.parent = parent
        self.bindings: dict[str, list[Binding]] = {}
        self.statements: list[Statement] = []  # of this scope, not of those inside it
        self.outer: frozenset[str] = frozenset()  # declared global or nonlocal

    def bind(self, name: str, binding: Binding) -> None:
        """Record what gives a name its meaning."""
        if name in self.bindings:
            self.bindings[name].append(binding)
        else:  # most names are bound once: a list of one takes less than one that has grown
            self.bindings[name] = [binding]

    def bind_arguments(self, arguments: ast.arguments) -> None:
        """Record a function's parameters, with their defaults."""
        for argument, default in defaults(arguments):
            binding = Binding("param", argument, value=default, annotation=argument.annotation)
            self.bind(argument.arg, binding)

    def and_outer(self) -> Iterator[Scope]:
        """This scope and those around it, the innermost first."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def owner(self, name: str) -> Scope | None:
        """The scope that binds a name read in this one; None for built-in names."""
        for scope in self.and_outer():
            if name in scope.bindings and name not in scope.outer:
                # A class's names are not seen from its methods.
                if scope is self or not isinstance(scope.node, ast.ClassDef):
                    return scope
        return None

    def home(self, name: str) -> Scope:
        """The scope in which this one's assignments to a name take effect."""
        scope = self
        while name in scope.outer and scope.parent is not None:
            scope = scope.parent
        return scope

    def look_up(self, name: str) -> list[Binding]:
        """What binds a name that is read in this scope; empty for built-in names."""
        scope = self.owner(name)
        return scope.bindings[name] if scope else []

    def inside(self, other: Scope) -> bool:
        """Whether this is ``other`` or a scope within it."""
        return any(scope is other for scope in self.and_outer())


def bind_import(scope: Scope, node: Import) -> None:
    """Bind what an import statement binds, at module level where the name is declared global."""
    module = ""
    if isinstance(node, ast.ImportFrom):
        module = "." * node.level + (f"{node.module}." if node.module else "")
    for alias in node.names:
        if alias.name != "*":
            bound = alias.asname or alias.name.split(".")[0]
            qualified = module + (alias.name if alias.asname else bound)
            if module and alias.name == "torch" and module.partition(".")[0] not in _OWN_TORCH:
                qualified = "torch"  # handed on by a module that imports it
            scope.home(bound).bind(bound, Binding("import", node, name=qualified))


def bound_names(node: Statement) -> Iterable[tuple[str, ast.expr | None]]:
    """The bare names that a statement assigns, each with its value where that is plain."""
    if isinstance(node, ast.Assign):
        return (pair for target in node.targets for pair in _targets(target, node.value))
    if isinstance(node, ast.AnnAssign):
        return _targets(node.target, node.value)
    if isinstance(node, (ast.AugAssign, ast.For, ast.AsyncFor)):
        return _targets(node.target, None)
    if isinstance(node, (ast.With, ast.AsyncWith)):
        return (pair for item in node.items for pair in _targets(item.optional_vars, None))
    if isinstance(node, ast.ExceptHandler) and node.name:
        return [(node.name, None)]
    return ()


def _targets(target: ast.expr | None, value: ast.expr | None) -> Iterator[tuple[str, ast.expr | None]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, (ast.Tuple, ast.List)):
        values: list[ast.expr | None] = [None] * len(target.elts)
        if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
            values = [*value.elts]
        for element, element_value in zip(target.elts, values):
            yield from _targets(element, element_value)
    elif isinstance(target, ast.Starred):
        yield from _targets(target.value, None)
