"""One file of a program: its nodes, and what the text around them says."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any, Union

from migrator.names.index import ModuleIndex

Statement = ast.stmt
Definition = Union[ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef]

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, eq=False)
class File:
    """One file. ``imports``: the names that its imports bind, with the file and the name there.

    ``by_kind``: its nodes, in the order of the lines; ``stores``: the names and attributes that it sets;
    ``defined``: its functions and classes by name, without methods.
    """

    name: str
    text: str
    index: ModuleIndex
    imports: dict[str, tuple[str, str]] = field(default_factory=dict)
    by_kind: dict[type, list[Any]] = field(default_factory=dict)
    stores: dict[str, list[Any]] = field(default_factory=dict)
    defined: dict[str, list[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for node in ast.walk(self.index.tree):
            if hasattr(node, "lineno"):
                self.by_kind.setdefault(type(node), []).append(node)
        for nodes in self.by_kind.values():
            nodes.sort(key=_place_in_text)
        for node in self.nodes(ast.Name, ast.Attribute):
            if isinstance(node.ctx, ast.Store):
                self.stores.setdefault(dotted(node), []).append(node)
        for node in self.nodes(*FUNCTIONS, ast.ClassDef):
            if not isinstance(node.parent, ast.ClassDef):
                self.defined.setdefault(node.name, []).append(node)

    def nodes(self, *kinds: type) -> list[Any]:
        """The nodes of these kinds, in the order of the text's lines."""
        found = [node for kind in kinds for node in self.by_kind.get(kind, ())]
        return found if len(kinds) == 1 else sorted(found, key=_place_in_text)

    def called(self, call: ast.Call) -> str:
        """The full name of what a call calls, through import aliases; empty where it is not known."""
        return self.index.qualified_name(call.func)


def _place_in_text(node: Any) -> tuple[int, int]:
    return node.lineno, node.col_offset


def dotted(node: Any) -> str:
    """``a.b.c`` for such an expression, empty for any other."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = dotted(node.value)
        return f"{before}.{node.attr}" if before else ""
    return ""


def function_of(node: Any) -> Any:
    """The function around a node, None at the margin; around a parameter's default, the outer one."""
    child, up = node, getattr(node, "parent", None)
    while up is not None:
        if isinstance(up, FUNCTIONS) and child in up.body:
            return up
        child, up = up, getattr(up, "parent", None)
    return None


def parent(node: Any) -> Any:
    """What a node is part of."""
    return node.parent


def blocks(statement: ast.AST) -> list[list[ast.stmt]]:
    """The blocks of statements below a compound statement, in the order of the text."""
    found: list[list[ast.stmt]] = [getattr(statement, "body", [])]
    found += [one.body for one in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ()))]
    found += [getattr(statement, "orelse", []), getattr(statement, "finalbody", [])]
    return [block for block in found if block]


def block_around(statement: ast.AST) -> tuple[list[ast.stmt], ast.AST]:
    """The statements among which one stands, and what they are below; no statements for what is none."""
    owner: ast.AST = parent(statement)
    return next((block for block in blocks(owner) if statement in block), []), owner


def taker_of(node: Any) -> Any:
    """What a node is given to: a call, where it is one of its arguments."""
    return parent(node.parent) if isinstance(node.parent, ast.keyword) else node.parent


def class_of(function: Any) -> ast.ClassDef | None:
    """The class whose method a function is."""
    owner = getattr(function, "parent", None)
    return owner if isinstance(owner, ast.ClassDef) else None


def argument(call: ast.Call, function: Any, name: str) -> Any:
    """What a call gives to a parameter; None where it gives nothing, or that cannot be told."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    if class_of(function) and not _static(function):
        names = names[1:]
    given = call.args
    if name in names and names.index(name) < len(given):
        before = given[: names.index(name) + 1]
        if not any(isinstance(one, ast.Starred) for one in before):
            return before[-1]
    return None


def default(function: Any, name: str) -> Any:
    """The default of a parameter; None where it has none."""
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args]
    pairs = [
        *zip(reversed(named), reversed(arguments.defaults)),
        *zip(arguments.kwonlyargs, arguments.kw_defaults),
    ]
    return next((value for one, value in pairs if one.arg == name), None)


def parameters(function: Any) -> list[str]:
    """The names of a function's parameters."""
    arguments = function.args
    return [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


def bindings(file: File, function: Any, name: str) -> list[tuple[Any, int]]:
    """The values that a scope's assignments give to a name, each with its place in a tuple or -1.

    A value is None where something else than an assignment binds the name.
    """
    found: list[tuple[Any, int]] = []
    for node in file.stores.get(name, ()):
        if function_of(node) is not function:
            continue
        found.append(stored_value(node))
    return found


def stored_value(node: Any) -> tuple[Any, int]:
    """What an assignment gives to the node that it stores to, and the place in a tuple or -1."""
    up = node.parent
    if isinstance(up, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and up.value is not node:
        return up.value, -1
    if isinstance(up, (ast.Tuple, ast.List)) and isinstance(parent(up), ast.Assign):
        return parent(up).value, up.elts.index(node)
    return None, -1


def on_self(file: File, owner: ast.ClassDef, attribute: str) -> list[tuple[Any, int]]:
    """The same for ``self.attribute`` in a class."""
    found: list[tuple[Any, int]] = []
    for node in file.stores.get(f"self.{attribute}", ()):
        if class_of(function_of(node)) is not owner:
            continue
        found.append(stored_value(node))
    return found


def yields(function: Any) -> list[Any]:
    """The ``yield`` expressions of a function: what makes it a generator."""
    return [one for one in ast.walk(function) if isinstance(one, ast.Yield) and function_of(one) is function]


def _static(function: Any) -> bool:
    return any(dotted(one) == "staticmethod" for one in function.decorator_list)
