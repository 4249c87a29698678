"""Compute capability: an NPU has none, and programs that ask for it must still start."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from migrator.findings.finding import Edit
from migrator.language import _
from migrator.matchers.context import FileContext, Match, found, put_around
from migrator.matchers.packs import Options, Rule
from migrator.names.index import ModuleIndex
from migrator.names.tree import attributes


@dataclass(frozen=True)
class PropertyOptions(Options):
    """Members of CUDA's device properties: those with a stand-in for None, and the ``missing`` ones."""

    stand_ins: dict[str, int] = field(default_factory=dict)
    missing: tuple[str, ...] = ()

    def words_of_lines(self) -> tuple[str, ...]:
        """The members."""
        return (*self.stand_ins, *self.missing)


def find_calls(context: FileContext, rule: Rule) -> Iterator[Match]:
    """``get_device_capability(...)`` gives None on an NPU: a stand-in keeps comparisons alive."""
    index = context.index
    for call, name in context.calls_of(rule):
        parent = index.parent(call)
        if isinstance(parent, ast.BoolOp) and isinstance(parent.op, ast.Or) and call is not parent.values[-1]:
            continue  # it has a stand-in
        if isinstance(parent, (ast.Expr, ast.JoinedStr)):
            continue  # printed as None, which is the truth
        yield found(context, rule, call, api=name, edits=put_around(index, call, "(", " or (8, 0))"))


def find_properties(context: FileContext, rule: Rule[PropertyOptions]) -> Iterator[Match]:
    """``major`` and ``minor`` of device properties are None; other CUDA members are reported."""
    index, stand_ins = context.index, rule.options.stand_ins
    wanted = rule.options.words_of_lines()
    for node in (each for ref in index.refs for each in attributes(ref)):
        if node.attr not in wanted or not _is_properties(index, rule, node.value):
            continue
        api = f"device properties .{node.attr}"
        if node.attr in stand_ins and isinstance(node.ctx, ast.Load):
            start, base_end, end = index.start(node), index.end(node.value), index.end(node)
            edits = [
                Edit(start, start, "(getattr("),
                Edit(base_end, end, f', "{node.attr}", None) or {stand_ins[node.attr]})'),
            ]
            yield found(context, rule, node, api=api, edits=edits)
        elif node.attr in rule.options.missing:
            message = _("{attr} has no meaning on NPUs: it is None or missing", attr=node.attr)
            yield found(context, rule, node, api=api, message=message)


def _is_properties(index: ModuleIndex, rule: Rule, node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return index.qualified_name(node.func) in rule.match
    if not isinstance(node, ast.Name):
        return False
    for binding in index.bindings(node):
        if isinstance(binding.value, ast.Call):
            index.expand(binding.node)
            if index.qualified_name(binding.value.func) in rule.match:
                return True
    return False
