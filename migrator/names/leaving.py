"""What leaves a block: ``return`` and its like, and calls that end the program or a test."""

from __future__ import annotations

import ast

from migrator.names.tree import called_name

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
