"""What a project's modules define: classes with their bases, functions, imports, and what names hold."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import field

from migrator.light import Frozen
from migrator.names.index import ModuleIndex
from migrator.names.outline import Scope, assigned
from migrator.project.module_names import absolute_name, module_name

_CONTAINERS = ("ModuleList()", "Sequential()", "ModuleDict()")


class Definition(Frozen):
    """A module, class or function (``kind``), in these lines.

    ``values`` are what names hold (``conv`` is ``Conv()``): a module's own, a function's own, and of a class
    those in its body and of ``self``; ``imports`` the full names of what it imports itself. ``bases`` and
    ``decorators`` are as they are written, ``returned`` are the nested functions that it gives.
    """

    kind: str
    line: int = 1
    end: int = 1
    imports: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    parameters: frozenset[str] = frozenset()
    bases: tuple[str, ...] = ()
    decorators: tuple[str, ...] = ()
    returned: tuple[str, ...] = ()


class ModuleFacts(Frozen):
    """One file. ``definitions`` go by their names in it (``Conv.forward``, ``outer.inner``; '' is the file).

    ``stars`` are the modules of which it imports all, ``exported`` what ``__all__`` names.
    """

    file: str
    name: str
    definitions: Mapping[str, Definition]
    stars: tuple[str, ...] = ()
    exported: frozenset[str] | None = None

    @property
    def is_package(self) -> bool:
        """Whether the file is an ``__init__.py``."""
        return self.file.endswith("__init__.py")


def scan_module(file: str, index: ModuleIndex, package: str = "") -> ModuleFacts:
    """The facts of a file; ``package`` is the name of the project's folder where that is a package."""
    scopes = scopes_by_name(index)
    definitions = {}
    for name, scope in scopes.items():
        imports = {
            bound: absolute_name(binding.name, file, package)
            for bound, bindings in scope.bindings.items()
            for binding in bindings
            if binding.kind == "import"
        }
        definitions[name] = _definition(name, scope, imports, list(scopes.values()))
    stars = [absolute_name(star, file, package) for star in index.stars]
    exported = None
    for target, value in assigned(index.module_scope):
        if isinstance(target, ast.Name) and target.id == "__all__":
            exported = frozenset(str(e.value) for e in ast.walk(value) if isinstance(e, ast.Constant))
    return ModuleFacts(file, module_name(file, package), definitions, tuple(stars), exported)


def scopes_by_name(index: ModuleIndex) -> dict[str, Scope]:
    """Every scope by its name inside the module, the outer ones first.

    A function of which there is more than one (a property's setter, one a branch) is ``name#2``.
    """
    found: dict[str, Scope] = {}
    names: dict[Scope, str] = {}
    for scope in index.scopes:
        name = ""
        if scope.parent is not None and not isinstance(scope.node, ast.Module):
            outer = names[scope.parent]
            name = plain = f"{outer}.{scope.node.name}" if outer else scope.node.name
            number = 2
            while name in found and not isinstance(scope.node, ast.ClassDef):
                name, number = f"{plain}#{number}", number + 1
        found[name] = scope
        names[scope] = name
    return found


def _definition(name: str, scope: Scope, imports: dict[str, str], scopes: list[Scope]) -> Definition:
    node = scope.node
    if isinstance(node, ast.Module):
        last = {
            target.id: written(value) for target, value in assigned(scope) if isinstance(target, ast.Name)
        }
        return Definition("module", 1, 1, imports, {key: (value,) for key, value in last.items() if value})
    place = (node.lineno, node.end_lineno or node.lineno, imports)
    if isinstance(node, ast.ClassDef):
        values = _held_by_class(scope, [inner for inner in scopes if inner.inside(scope)])
        return Definition("class", *place, values, bases=tuple(map(written, node.bases)))
    nested = {item.name for item in node.body if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef))}
    returned = {
        statement.value.id
        for statement in scope.statements
        if isinstance(statement, ast.Return) and isinstance(statement.value, ast.Name)
    }
    return Definition(
        "function",
        *place,
        _held_by_function(scope),
        frozenset(name for name, bound in scope.bindings.items() if any(b.kind == "param" for b in bound)),
        decorators=tuple(written(d.func if isinstance(d, ast.Call) else d) for d in node.decorator_list),
        returned=tuple(f"{name}.{given}" for given in sorted(nested & returned)),
    )


def _held_by_class(own: Scope, inside: list[Scope]) -> dict[str, tuple[str, ...]]:
    values: dict[str, list[str]] = {}
    for target, value in assigned(own, annotated=False):
        if isinstance(target, ast.Name) and written(value):
            values.setdefault(target.id, []).append(written(value))
    for scope in inside:
        for target, value in assigned(scope):
            if isinstance(target, ast.Attribute) and written(target.value) == "self":
                values.setdefault(target.attr, []).extend(_held(value))
    return _each_once(values)


def _held_by_function(scope: Scope) -> dict[str, tuple[str, ...]]:
    values: dict[str, list[str]] = {}
    for target, value in assigned(scope, annotated=False):
        if isinstance(target, ast.Name):
            values.setdefault(target.id, []).extend(_held(value))
    for loop in scope.statements:
        if isinstance(loop, (ast.For, ast.AsyncFor)) and isinstance(loop.target, ast.Name):
            if iterated := written(loop.iter):
                values.setdefault(loop.target.id, []).append(f"{iterated}[]")
    return _each_once(values)


def _each_once(values: Mapping[str, list[str]]) -> dict[str, tuple[str, ...]]:
    return {name: tuple(dict.fromkeys(held)) for name, held in values.items()}


def written(node: ast.AST) -> str:
    """A dotted expression as text, with () for a call and [] for an index; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        inner, end = written(node.value), f".{node.attr}"
    elif isinstance(node, ast.Call):
        inner, end = written(node.func), "()"
    elif isinstance(node, ast.Subscript):
        inner, end = written(node.value), "[]"
    else:
        return ""
    return inner + end if inner else ""


def _held(node: ast.expr) -> list[str]:
    """What a name holds that is assigned an expression: the calls in it, or the name; ? for anything else."""
    return _made(node) or [written(node) or "?"]


def _made(node: ast.expr) -> list[str]:
    """The calls that may give an expression's value; of a container (ModuleList) those inside it too."""
    if isinstance(node, ast.Call) and written(node).rpartition(".")[2] not in _CONTAINERS:
        return [written(node)] if written(node) else []
    parts: list[ast.expr] = []
    if isinstance(node, ast.Call):
        parts = [item.value if isinstance(item, ast.Starred) else item for item in node.args]
    elif isinstance(node, ast.IfExp):
        parts = [node.body, node.orelse]
    elif isinstance(node, ast.BoolOp):
        parts = node.values
    elif isinstance(node, (ast.List, ast.Tuple)):
        parts = node.elts
    elif isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        parts = [node.elt]
    return [made for part in parts for made in _made(part)]
