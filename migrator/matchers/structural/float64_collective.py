"""HCCL refuses float64 in reducing collectives."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from migrator.findings.finding import Edit
from migrator.matchers.calls import calls_of
from migrator.matchers.context import FileContext, Match, found
from migrator.matchers.options import Options
from migrator.matchers.packs import Rule
from migrator.names.index import ModuleIndex


@dataclass(frozen=True)
class CollectiveOptions(Options):
    """``dtypes``: the qualified names of those that are refused."""

    dtypes: tuple[str, ...] = ()


def find(context: FileContext, rule: Rule[CollectiveOptions]) -> Iterator[Match]:
    """Report where the tensor of a reducing collective is made with float64."""
    index = context.index
    reported: set[int] = set()
    for call, name in calls_of(index, rule):
        by_keyword = (k.value for k in call.keywords if k.arg in ("tensor", "output", "input"))
        for argument in (*call.args[:2], *by_keyword):
            # What gives the tensor: itself, or what its name was assigned.
            for value in index.assigned(argument) if isinstance(argument, ast.Name) else [argument]:
                maker = _double(index, rule, value)
                if maker is not None and id(maker) not in reported:
                    reported.add(id(maker))
                    yield _report(context, rule, maker, name)


def _double(index: ModuleIndex, rule: Rule[CollectiveOptions], node: ast.expr) -> ast.expr | None:
    """The ``dtype=torch.float64``, ``.double()`` or ``.to(torch.float64)`` in a chain of calls."""
    while isinstance(node, ast.Call):
        for value in [*node.args, *(k.value for k in node.keywords)]:
            is_name = isinstance(value, (ast.Name, ast.Attribute))
            if is_name and index.qualified_name(value) in rule.options.dtypes:
                return value
        if not isinstance(node.func, ast.Attribute):
            return None
        if node.func.attr == "double" and not node.args:
            return node.func
        node = node.func.value
    return None


def _report(context: FileContext, rule: Rule, maker: ast.expr, name: str) -> Match:
    index = context.index
    end = index.end(maker)
    written = maker.attr if isinstance(maker, ast.Attribute) else ""
    new = "float" if index.call_of(maker) else "float32" if written in ("float64", "double") else ""
    edits = [Edit(end - len(written), end, new)] if new else []
    return found(context, rule, maker, api=name, edits=edits, needs_npu=False)
