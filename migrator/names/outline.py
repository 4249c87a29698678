"""The statements and scopes of a text, and what binds a name in each: what its indexes share."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Optional, Union

from migrator.files.source import Lines
from migrator.light import NamedTuple
from migrator.names.tree import Function, Import, Statement, body_fields, defaults, parse

# Packages with a module named torch.
_OWN_TORCH = frozenset({"horovod", "safetensors", "smdistributed"})
# Most statements are of these kinds.
_BINDS_NOTHING = frozenset(
    {ast.Expr, ast.Return, ast.If, ast.While, ast.Try, ast.Raise, ast.Assert, ast.Pass, ast.Delete}
)
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

    def and_outer(self) -> Iterator[Scope]:
        """This scope and those around it, the innermost first."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def owner(self, name: str) -> Scope | None:
        """The scope that binds a name read in this one; None for built-in names."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.bindings and name not in scope.outer:
                # A class's names are not seen from its methods.
                if scope is self or not isinstance(scope.node, ast.ClassDef):
                    return scope
            scope = scope.parent
        return None

    def look_up(self, name: str) -> list[Binding]:
        """What binds a name that is read in this scope; empty for built-in names."""
        scope = self.owner(name)
        return scope.bindings[name] if scope else []

    def inside(self, other: Scope) -> bool:
        """Whether this is ``other`` or a scope within it."""
        return any(scope is other for scope in self.and_outer())


def assigned(scope: Scope, annotated: bool = True) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The targets in a scope's own statements that are assigned a value."""
    for statement in scope.statements:
        if isinstance(statement, ast.Assign):
            yield from ((target, statement.value) for target in statement.targets)
        elif annotated and isinstance(statement, ast.AnnAssign) and statement.value is not None:
            yield statement.target, statement.value


class Outline:
    """The tree of a text, with what its statements are and bind. Nobody changes it: see ``outline``.

    ``parents`` are those of the statements; ``opened`` are the scopes of the module, of
    functions and of classes, each right before those inside it. ``stars`` are the modules of which all names
    are imported, ``meant`` the names that some import or assignment binds: others have no full name.
    ``heads`` are what indexes find out: the first and the last lines of the statements.
    """

    def __init__(self, text: str, lines: Optional[Lines] = None) -> None:
        self.lines = lines or Lines(text)
        self.tree = parse(text)
        self.module_scope = Scope(self.tree, None)
        self.statements: list[Statement] = []
        self.imports: list[Import] = []
        self.classes: list[ast.ClassDef] = []
        self.functions: list[Function] = []
        self.stars: list[str] = []
        self.meant: set[str] = set()
        self.parents: dict[object, ast.AST] = {}
        self.opened: dict[object, Scope] = {self.tree: self.module_scope}
        self.heads: list[list[int]] = []
        stack: list[tuple[Any, ast.AST, Scope]] = [
            (child, self.tree, self.module_scope) for child in reversed(self.tree.body)
        ]
        parents, statements = self.parents, self.statements
        while stack:
            node, parent, scope = stack.pop()
            parents[node] = parent
            statements.append(node)
            scope.statements.append(node)
            cls = node.__class__
            if cls not in _BINDS_NOTHING:
                scope = self._bind(node, cls, scope)
            for field in reversed(body_fields(cls)):
                stack += [(child, node, scope) for child in reversed(getattr(node, field))]

    def _bind(self, node: Any, cls: type, scope: Scope) -> Scope:
        """Note what a statement binds, and give the scope of its body."""
        if cls is ast.Import or cls is ast.ImportFrom:
            self.imports.append(node)
            if node.names[0].name == "*":
                self.stars.append("." * node.level + (node.module or ""))
            self.meant.update(each.asname or each.name.partition(".")[0] for each in node.names)
            _bind_import(scope, node)
        elif cls is ast.FunctionDef or cls is ast.AsyncFunctionDef:
            self.functions.append(node)
            scope.bind(node.name, Binding("def", node))
            scope = self.opened[node] = Scope(node, scope)
            for argument, default in defaults(node.args):
                binding = Binding("param", argument, value=default, annotation=argument.annotation)
                scope.bind(argument.arg, binding)
        elif cls is ast.ClassDef:
            self.classes.append(node)
            scope.bind(node.name, Binding("class", node))
            scope = self.opened[node] = Scope(node, scope)
        elif cls is ast.Global or cls is ast.Nonlocal:
            scope.outer = scope.outer.union(node.names)
        else:
            for name, value in _bound_names(node, cls):
                self.meant.add(name)
                scope.bind(name, Binding("assign", node, "", value))
        return scope


def _bind_import(scope: Scope, node: Import) -> None:
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
            home = next(each for each in scope.and_outer() if bound not in each.outer or each.parent is None)
            home.bind(bound, Binding("import", node, name=qualified))


def _bound_names(node: Any, cls: type) -> Iterable[tuple[str, ast.expr | None]]:
    """The bare names that a statement assigns, each with its value where that is plain."""
    if cls is ast.Assign:
        return [pair for target in node.targets for pair in _targets(target, node.value)]
    if cls is ast.AnnAssign:
        return _targets(node.target, node.value)
    if cls in (ast.AugAssign, ast.For, ast.AsyncFor):
        return _targets(node.target, None)
    if cls in (ast.With, ast.AsyncWith):
        return [pair for item in node.items for pair in _targets(item.optional_vars, None)]
    return [(node.name, None)] if cls is ast.ExceptHandler and node.name else ()


def _targets(target: ast.expr | None, value: ast.expr | None) -> Iterable[tuple[str, ast.expr | None]]:
    if isinstance(target, ast.Name):
        return [(target.id, value)]
    if isinstance(target, ast.Starred):
        return _targets(target.value, None)
    if not isinstance(target, (ast.Tuple, ast.List)):
        return ()
    values: list[ast.expr | None] = [None] * len(target.elts)
    if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
        values = [*value.elts]
    return [pair for each in zip(target.elts, values) for pair in _targets(*each)]


_RECENT = 8
_MOST = 4_000_000  # characters of texts; an outline takes 40 times as many bytes
_kept: dict[str, Outline] = {}
_size = 0


def outline(text: str, lines: Optional[Lines] = None) -> Outline:
    """The outline of a text, made once for those who soon ask again; ``lines`` are its own, where known.

    A file is read to see what it tells the others, and again to be checked: each is parsed once. Where all
    take too much memory, the first ones and the last stay. Raises what ``parse`` raises.
    """
    global _size
    shared = _kept.get(text)
    if shared is None:
        shared = Outline(text, lines)
        _size += len(text)
        while _size > _MOST and len(_kept) >= _RECENT:
            forget_outline(tuple(_kept)[-_RECENT])  # another thread may be here, too
        _kept[text] = shared
    return shared


@contextmanager
def uncollected() -> Iterator[None]:
    """No garbage is looked for: a tree is built at once and goes at once, and that costs a quarter more."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def forget_outline(text: str) -> None:
    """Give the memory of an outline back: a tree that goes at once is none that garbage is looked for in."""
    global _size
    if _kept.pop(text, None) is not None:
        _size -= len(text)
