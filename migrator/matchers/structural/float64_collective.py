"""HCCL refuses float64 in reducing collectives."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from migrator.findings.finding import Edit
from migrator.matchers.context import FileContext, Match, found
from migrator.matchers.packs import Rule

# Seen with torch_npu 2.13: "HCCL allreduce: Unsupported data type at::kDouble"; broadcast and
# all_gather take it.
_REDUCING = frozenset(
    {"all_reduce", "reduce", "reduce_scatter", "reduce_scatter_tensor", "all_reduce_coalesced"}
)
_DOUBLE = frozenset({"torch.float64", "torch.double"})


def find(context: FileContext, rule: Rule) -> Iterator[Match]:
    """Report where the tensor of a reducing collective is made with float64."""
    index = context.index
    reported: set[int] = set()
    for call in index.calls:
        name = index.qualified_name(call.func)
        if not name.startswith("torch.distributed.") or name.rpartition(".")[2] not in _REDUCING:
            continue
        for argument in [
            *call.args[:2],
            *(k.value for k in call.keywords if k.arg in ("tensor", "output", "input")),
        ]:
            for maker in _makers(context, argument):
                if id(maker) not in reported:
                    reported.add(id(maker))
                    yield _report(context, rule, maker, name)


def _makers(context: FileContext, node: Any) -> Iterator[Any]:
    """The expressions that give the tensor: itself, or what its name was assigned."""
    if isinstance(node, ast.Name):
        for binding in context.index.bindings(node):
            if binding.kind == "assign" and binding.value is not None:
                context.index.expand(binding.node)
                yield from _double(context, binding.value)
    else:
        yield from _double(context, node)


def _double(context: FileContext, node: Any) -> Iterator[Any]:
    """The ``dtype=torch.float64``, ``.double()`` or ``.to(torch.float64)`` in a chain of calls."""
    while isinstance(node, ast.Call):
        for value in [*node.args, *(k.value for k in node.keywords)]:
            if (
                isinstance(value, (ast.Name, ast.Attribute))
                and context.index.qualified_name(value) in _DOUBLE
            ):
                yield value
                return
        if isinstance(node.func, ast.Attribute) and node.func.attr == "double" and not node.args:
            yield node.func
            return
        if not isinstance(node.func, ast.Attribute):
            return
        node = node.func.value


def _report(context: FileContext, rule: Rule, maker: Any, name: str) -> Match:
    index = context.index
    end = index.end(maker)
    written = maker.attr if isinstance(maker, ast.Attribute) else ""
    new = {"float64": "float32", "double": "float32"}.get(written, "")
    if index.call_of(maker):
        new = "float"
    edits = [Edit(end - len(written), end, new)] if new else []
    return found(context, rule, maker, api=name, edits=edits, needs_npu=False)
