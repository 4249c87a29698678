"""What a program does where a value is None or an answer is no: it stops, or had asked before."""

from __future__ import annotations

import ast

from migrator.names.index import ModuleIndex
from migrator.names.statements import ends_run
from migrator.names.tree import called_name

# Calls that read a version, or a number, from a text.
_READS = frozenset({"parse", "Version", "LooseVersion", "StrictVersion", "parse_version", "float", "int"})
_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def stops_without(index: ModuleIndex, node: ast.AST) -> bool:
    """Whether a program stops where a value is None, or an answer no: ``if version.cuda is None: raise``."""
    test, around = node, index.parent(node)
    holds = False
    while isinstance(around, (ast.UnaryOp, ast.Compare, ast.BoolOp, ast.Call)):
        if isinstance(around, ast.UnaryOp):
            holds = not holds
        elif isinstance(around, ast.Compare):
            if not isinstance(around.ops[0], (ast.Is, ast.IsNot)):
                return False
            holds = isinstance(around.ops[0], ast.Is)
        elif isinstance(around, ast.BoolOp) and isinstance(around.op, ast.And) == holds:
            return False  # the other conditions decide, too
        elif isinstance(around, ast.Call) and around.func is not test:
            return False
        test, around = around, index.parent(around)
    if isinstance(around, ast.Assert):
        return test is around.test and not holds
    if not isinstance(around, ast.If) or test is not around.test:
        return False
    taken = around.body if holds else around.orelse
    last = taken[-1] if taken else None
    return isinstance(last, ast.Raise) or ends_run(last)


def needs_value(index: ModuleIndex, node: ast.AST) -> bool:
    """Whether None fails at once: ``torch.version.cuda.split(".")``, ``parse(torch.version.cuda)``."""
    around = index.parent(node)
    if isinstance(around, ast.Attribute):
        return True
    if isinstance(around, ast.Compare):
        return isinstance(around.ops[0], _ORDERS)
    return isinstance(around, ast.Call) and node in around.args and called_name(around) in _READS
