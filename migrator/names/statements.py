"""Statements: the fields that are bodies of compound ones, where their heads are, what leaves a block."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Iterator
from typing import Any

from migrator.names.tree import called_name, children, fields_of

_BODY_FIELDS = ("body", "handlers", "orelse", "finalbody", "cases")
_BODIES: dict[type, tuple[str, ...]] = {}


def touches(node: Any, lines: list[int]) -> bool:
    """Whether a node lies on one of some lines, which are in order."""
    first = getattr(node, "lineno", None)
    if first is None:  # match patterns, arguments and comprehensions carry no place of their own
        return any(touches(child, lines) for child in children(node))
    place = bisect_left(lines, first)
    return place < len(lines) and lines[place] <= node.end_lineno


def body_fields(cls: type) -> tuple[str, ...]:
    """The fields of a kind of statement that hold statements."""
    bodies = _BODIES.get(cls)
    if bodies is None:
        bodies = _BODIES[cls] = tuple(name for name in _BODY_FIELDS if name in fields_of(cls))
    return bodies


def statements_below(node: ast.AST) -> Iterator[ast.AST]:
    """The statements, handlers and cases in a node's bodies, at any depth, in the order of the text.

    No expression is visited, which most of a tree is.
    """
    stack = [node]
    while stack:
        statement = stack.pop()
        if statement is not node:
            yield statement
        fields = body_fields(statement.__class__)
        stack += reversed([each for field in fields for each in getattr(statement, field)])


def head_lines(statement: Any) -> tuple[int, int]:
    """The first and the last line of a statement, without those that only its body has."""
    cls = statement.__class__
    bodies = body_fields(cls)
    if not bodies:
        return statement.lineno, statement.end_lineno
    if cls.__name__ == "match_case":  # it has no place of its own
        return statement.pattern.lineno, statement.body[0].lineno
    decorators = getattr(statement, "decorator_list", None)
    first = decorators[0].lineno if decorators else statement.lineno
    below = getattr(statement, bodies[0])[0]
    return first, getattr(below, "pattern", below).lineno


def heads(statement: ast.AST) -> Iterator[ast.AST]:
    """The parts of a compound statement that are not its body."""
    for field in fields_of(statement.__class__):
        if field not in _BODY_FIELDS:
            value = getattr(statement, field)
            if value.__class__ is list:
                yield from (item for item in value if isinstance(item, ast.AST))
            elif isinstance(value, ast.AST):
                yield value


LEAVING = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_END_PROGRAM = frozenset({"exit", "_exit", "quit", "abort"})
_END_TEST = frozenset({"skip", "skipTest", "fail", "xfail", "importorskip"})


def leaves(statement: ast.AST | None) -> bool:
    """Whether what stands behind a statement in its block does not run."""
    return isinstance(statement, LEAVING) or ends_run(statement)


def ends_run(statement: ast.AST | None) -> bool:
    """Whether a statement calls what ends the program, or a test."""
    return _called(statement) in _END_PROGRAM | _END_TEST


def stops(statement: ast.AST | None) -> bool:
    """Whether a statement raises, or ends the program."""
    return isinstance(statement, ast.Raise) or _called(statement) in _END_PROGRAM


def _called(statement: ast.AST | None) -> str:
    return called_name(statement.value) if isinstance(statement, ast.Expr) else ""
