"""Attention with a mask and ``is_causal``: some kernels of CUDA apply both, and NPUs take only one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrator.matchers.context import FileContext, Match, found
from migrator.matchers.packs import Rule
from migrator.names.index import ModuleIndex
from migrator.names.tree import argument_of, is_none, is_off, walk


def find(context: FileContext, rule: Rule) -> Iterator[Match]:
    """Calls that give both: ``is_causal=True``, or one that is only true where there is a mask."""
    index = context.index
    for call, _ in context.calls_of(rule):
        mask, causal = argument_of(call, "attn_mask", 3), argument_of(call, "is_causal", 5)
        if mask is None or causal is None or is_off(mask) or is_off(causal):
            continue
        if _wants(index, causal, {ast.dump(node) for node in walk(mask)}):
            yield found(context, rule, call, severity="error")
        elif isinstance(causal, ast.Constant) and causal.value is True:
            yield found(context, rule, call)


def _wants(index: ModuleIndex, condition: ast.expr, parts: set[str]) -> bool:
    """Whether a condition holds only where something of ``parts`` is not None."""
    if isinstance(condition, ast.Name):
        values = index.only_assigned(condition)
        return bool(values) and all(_wants(index, value, parts) for value in values)
    if isinstance(condition, ast.BoolOp) and isinstance(condition.op, ast.And):
        return any(_wants(index, value, parts) for value in condition.values)
    return (
        isinstance(condition, ast.Compare)
        and isinstance(condition.ops[0], ast.IsNot)
        and is_none(condition.comparators[0])
        and ast.dump(condition.left) in parts
    )
