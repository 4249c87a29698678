"""Compute capability: an NPU has none, and programs that ask for it must still start."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from migrator.findings.finding import Edit
from migrator.matchers.context import FileContext, Match, found
from migrator.matchers.packs import Rule
from migrator.names.index import ModuleIndex

_CALLS = frozenset(
    f"{module}.get_device_capability" for module in ("torch.cuda", "torch.npu", "torch_npu.npu")
)
_PROPERTIES = frozenset(
    f"{module}.get_device_properties" for module in ("torch.cuda", "torch.npu", "torch_npu.npu")
)
_STAND_INS = {"major": "8", "minor": "0"}
_MISSING = frozenset(
    "gcnArchName max_threads_per_multi_processor regs_per_multiprocessor warp_size shared_memory_per_block "
    "shared_memory_per_block_optin shared_memory_per_multiprocessor".split()
)


def find_calls(context: FileContext, rule: Rule) -> Iterator[Match]:
    """``get_device_capability(...)`` gives None on an NPU: a stand-in keeps comparisons alive."""
    index = context.index
    for call in index.calls:
        name = index.qualified_name(call.func)
        if name not in _CALLS or _has_stand_in(index, call):
            continue
        parent = index.parent(call)
        if isinstance(parent, (ast.Expr, ast.JoinedStr)):
            continue  # printed as None, which is the truth
        start, end = index.start(call), index.end(call)
        edits = [Edit(start, start, "("), Edit(end, end, " or (8, 0))")]
        yield found(context, rule, call, api=name, edits=edits)


def _has_stand_in(index: ModuleIndex, call: Any) -> bool:
    parent = index.parent(call)
    return isinstance(parent, ast.BoolOp) and isinstance(parent.op, ast.Or) and call is not parent.values[-1]


def find_properties(context: FileContext, rule: Rule) -> Iterator[Match]:
    """``major`` and ``minor`` of device properties are None; other CUDA members are reported."""
    index = context.index
    for node in _property_reads(context):
        if node.attr in _STAND_INS and isinstance(node.ctx, ast.Load):
            start, base_end, end = index.start(node), index.end(node.value), index.end(node)
            edits = [
                Edit(start, start, "(getattr("),
                Edit(base_end, end, f', "{node.attr}", None) or {_STAND_INS[node.attr]})'),
            ]
            yield found(context, rule, node, api=f"device properties .{node.attr}", edits=edits)
        elif node.attr in _MISSING:
            yield found(
                context,
                rule,
                node,
                api=f"device properties .{node.attr}",
                message=f"{node.attr} says nothing about an NPU: it is None or missing there",
            )


def _property_reads(context: FileContext) -> Iterator[ast.Attribute]:
    index = context.index
    wanted = {*_STAND_INS, *_MISSING}
    for ref in index.refs:
        node: Any = ref
        while isinstance(node, ast.Attribute):
            if node.attr in wanted and _is_properties(context, node.value):
                yield node
            node = node.value


def _is_properties(context: FileContext, node: Any) -> bool:
    index = context.index
    if isinstance(node, ast.Call):
        return index.qualified_name(node.func) in _PROPERTIES
    if not isinstance(node, ast.Name):
        return False
    for binding in index.bindings(node):
        if isinstance(binding.value, ast.Call):
            index.expand(binding.node)
            if index.qualified_name(binding.value.func) in _PROPERTIES:
                return True
    return False
