"""What nodes of a syntax tree say by themselves; what is around them says ``program.File``."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any, Optional, Union

from migrator.names.tree import FUNCTIONS, Function, defaults

Loop = Union[ast.For, ast.While]
Definition = Union[Function, ast.ClassDef]
# What an assignment gives to a name, and its place in a tuple or -1; None: something else binds the name.
Value = tuple[Optional[ast.expr], int]

LOOPS = (ast.For, ast.While)


def dotted(node: Any) -> str:
    """``a.b.c`` for such an expression, empty for any other."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = dotted(node.value)
        return f"{before}.{node.attr}" if before else ""
    return ""


def last_name(call: Any) -> str:
    """The last part of the dotted name that a call calls; empty for any other node."""
    return dotted(call.func).split(".")[-1] if isinstance(call, ast.Call) else ""


def method_name(node: Any) -> str:
    """The name of the method that a call calls, of whatever; empty for any other node."""
    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    return str(node.func.attr) if called else ""


def is_main_guard(node: Any) -> bool:
    """``if __name__ == "__main__":``."""
    return isinstance(node, ast.If) and "__name__" in ast.dump(node.test)


def is_after(node: Any, statement: Any) -> bool:
    """Whether a node stands behind a statement in the text."""
    return (node.lineno, node.col_offset) > (statement.end_lineno, statement.end_col_offset)


def walk_all(nodes: Iterable[ast.AST]) -> Iterator[Any]:
    """Some nodes and all below them."""
    for node in nodes:
        yield from ast.walk(node)


def ids(*nodes: ast.AST) -> set[int]:
    """The ids of some nodes and of all below them."""
    return {id(one) for one in walk_all(nodes)}


def names_below(node: ast.AST) -> set[str]:
    """The dotted names in a node."""
    return {dotted(one) for one in ast.walk(node)} - {""}


def is_stored(node: ast.AST) -> bool:
    """Whether a name or an attribute is set where it stands."""
    return isinstance(getattr(node, "ctx", None), ast.Store)


def stored_below(node: ast.AST) -> Iterator[Any]:
    """What is set in a node."""
    return filter(is_stored, ast.walk(node))


def blocks(statement: ast.AST) -> list[list[ast.stmt]]:
    """The blocks of statements below a compound statement, in the order of the text."""
    found: list[list[ast.stmt]] = [getattr(statement, "body", [])]
    found += [one.body for one in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ()))]
    found += [getattr(statement, "orelse", []), getattr(statement, "finalbody", [])]
    return [block for block in found if block]


def parameters(function: Any) -> list[str]:
    """The names of a function's parameters."""
    arguments = function.args
    return [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


def default(function: Function, name: str) -> ast.expr | None:
    """The default of a parameter; None where it has none."""
    return next((value for one, value in defaults(function.args) if one.arg == name), None)


def method(owner: ast.AST, name: str) -> Function | None:
    """A class's own method; of anything else, none."""
    body = owner.body if isinstance(owner, ast.ClassDef) else ()
    return next((one for one in body if isinstance(one, FUNCTIONS) and one.name == name), None)
