"""Compute capability: an NPU has none, and programs that ask for it must still start."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from migrator.findings.finding import Edit
from migrator.matchers.calls import calls_of
from migrator.matchers.context import FileContext, Match, found
from migrator.matchers.options import Options
from migrator.matchers.packs import Rule
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
    for call, name in calls_of(index, rule):
        if _has_stand_in(index, call):
            continue
        parent = index.parent(call)
        if isinstance(parent, (ast.Expr, ast.JoinedStr)):
            continue  # printed as None, which is the truth
        start, end = index.start(call), index.end(call)
        edits = [Edit(start, start, "("), Edit(end, end, " or (8, 0))")]
        yield found(context, rule, call, api=name, edits=edits)


def _has_stand_in(index: ModuleIndex, call: ast.Call) -> bool:
    parent = index.parent(call)
    return isinstance(parent, ast.BoolOp) and isinstance(parent.op, ast.Or) and call is not parent.values[-1]


def find_properties(context: FileContext, rule: Rule[PropertyOptions]) -> Iterator[Match]:
    """``major`` and ``minor`` of device properties are None; other CUDA members are reported."""
    index, stand_ins = context.index, rule.options.stand_ins
    for node in _property_reads(context, rule):
        if node.attr in stand_ins and isinstance(node.ctx, ast.Load):
            start, base_end, end = index.start(node), index.end(node.value), index.end(node)
            edits = [
                Edit(start, start, "(getattr("),
                Edit(base_end, end, f', "{node.attr}", None) or {stand_ins[node.attr]})'),
            ]
            yield found(context, rule, node, api=f"device properties .{node.attr}", edits=edits)
        elif node.attr in rule.options.missing:
            yield found(
                context,
                rule,
                node,
                api=f"device properties .{node.attr}",
                message=f"{node.attr} says nothing about an NPU: it is None or missing there",
            )


def _property_reads(context: FileContext, rule: Rule[PropertyOptions]) -> Iterator[ast.Attribute]:
    wanted = rule.options.words_of_lines()
    for ref in context.index.refs:
        for node in attributes(ref):
            if node.attr in wanted and _is_properties(context.index, rule, node.value):
                yield node


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
