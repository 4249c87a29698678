"""What the text around a node says. The nodes know what they are part of: ``program.read_file`` notes it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any, Optional, Union

from migrator.names.tree import FUNCTIONS, Function, argument_of, defaults

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


# -- around a node ----------------------------------------------------------


def parent(node: Any) -> Any:
    """What a node is part of; None for the module."""
    return getattr(node, "parent", None)


def above(node: ast.AST) -> Iterator[tuple[Any, Any]]:
    """What a node is in, from the inside out, each behind its part that holds the node."""
    child, up = node, parent(node)
    while up is not None:
        yield child, up
        child, up = up, parent(up)


def function_of(node: ast.AST) -> Any:
    """The function around a node, None at the margin; around a parameter's default, the outer one."""
    return next((up for child, up in above(node) if isinstance(up, FUNCTIONS) and child in up.body), None)


def class_of(function: Function | None) -> ast.ClassDef | None:
    """The class whose method a function is."""
    owner = parent(function)
    return owner if isinstance(owner, ast.ClassDef) else None


def taker_of(node: ast.AST) -> Any:
    """What a node is given to: a call, where it is one of its arguments."""
    up = parent(node)
    return parent(up) if isinstance(up, ast.keyword) else up


def block_around(statement: ast.AST) -> tuple[list[ast.stmt], ast.AST]:
    """The statements among which one stands, and what they are below; no statements for what is none."""
    owner: ast.AST = parent(statement)
    return next((block for block in blocks(owner) if statement in block), []), owner


def is_alone(statement: ast.stmt) -> bool:
    """Whether nothing else stands in a statement's body around it."""
    return len(getattr(parent(statement), "body", [])) == 1


def is_main_guard(node: Any) -> bool:
    """``if __name__ == "__main__":``."""
    return isinstance(node, ast.If) and "__name__" in ast.dump(node.test)


def is_after(node: Any, statement: Any) -> bool:
    """Whether a node stands behind a statement in the text."""
    return (node.lineno, node.col_offset) > (statement.end_lineno, statement.end_col_offset)


# -- inside of a node -------------------------------------------------------


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


def stored_value(node: Any) -> Value:
    """What an assignment gives to the node that it stores to, and the place in a tuple or -1."""
    up = parent(node)
    if isinstance(up, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and up.value is not node:
        return up.value, -1
    if isinstance(up, (ast.Tuple, ast.List)) and isinstance(parent(up), ast.Assign):
        return parent(up).value, up.elts.index(node)
    return None, -1


# -- functions and calls ----------------------------------------------------


def parameters(function: Any) -> list[str]:
    """The names of a function's parameters."""
    arguments = function.args
    return [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


def default(function: Function, name: str) -> ast.expr | None:
    """The default of a parameter; None where it has none."""
    return next((value for one, value in defaults(function.args) if one.arg == name), None)


def argument(call: ast.Call, function: Any, name: str) -> Any:
    """What a call gives to a parameter; None where it gives nothing, or that cannot be told."""
    given = argument_of(call, name)
    if given is not None:
        return given
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    if class_of(function) and not any(dotted(one) == "staticmethod" for one in function.decorator_list):
        names = names[1:]
    if name in names and names.index(name) < len(call.args):
        before = call.args[: names.index(name) + 1]
        if not any(isinstance(one, ast.Starred) for one in before):
            return before[-1]
    return None


def method(owner: ast.AST, name: str) -> Function | None:
    """A class's own method; of anything else, none."""
    body = owner.body if isinstance(owner, ast.ClassDef) else ()
    return next((one for one in body if isinstance(one, FUNCTIONS) and one.name == name), None)


def yields(function: Any) -> list[ast.Yield]:
    """The ``yield`` expressions of a function: what makes it a generator."""
    return [one for one in ast.walk(function) if isinstance(one, ast.Yield) and function_of(one) is function]
