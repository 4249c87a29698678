"""Integer devices, for torch versions that take them for CUDA devices."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from migrator.findings.finding import Edit
from migrator.matchers.context import FileContext, Match, found
from migrator.matchers.options import Options
from migrator.matchers.packs import Rule
from migrator.names.index import ModuleIndex
from migrator.names.scopes import Binding


@dataclass(frozen=True)
class IntOptions(Options):
    """``methods``: those with a keyword ``device``. ``integers``: functions that give a whole number."""

    methods: tuple[str, ...] = ()
    integers: tuple[str, ...] = ()


def find(context: FileContext, rule: Rule[IntOptions]) -> Iterator[Match]:
    """``x.to(rank)`` and ``device=rank`` become an f-string, which evaluates the expression once."""
    index = context.index
    if context.version.int_device_is_npu:
        return
    for call in index.calls:
        node = _device_argument(context.index, rule, call)
        if node is None or not _surely_int(context.index, rule, node):
            continue
        start, end = index.start(node), index.end(node)
        source = index.segment(node)
        if isinstance(node, ast.Constant):
            edits = [Edit(start, end, f'"npu:{source}"')]
        elif '"' in source or "\\" in source or "\n" in source:
            edits = [Edit(start, start, '"npu:" + str('), Edit(end, end, ")")]
        else:
            edits = [Edit(start, start, 'f"npu:{'), Edit(end, end, '}"')]
        yield found(context, rule, node, api="int device", edits=edits)


def _device_argument(index: ModuleIndex, rule: Rule[IntOptions], call: ast.Call) -> ast.expr | None:
    name = index.qualified_name(call.func)
    method = f".{call.func.attr}" if isinstance(call.func, ast.Attribute) else ""
    if any(isinstance(a, ast.Starred) for a in call.args):
        return None
    for keyword in call.keywords:
        if keyword.arg == "device" and (name.startswith("torch.") or method in rule.options.methods):
            # The device functions of torch.cuda take an index on every version.
            return None if name.startswith(("torch.cuda.", "torch.npu.")) else keyword.value
    by_name = name in rule.match and len(call.args) == 1
    by_method = method in rule.match and not name.startswith("torch.")
    return call.args[0] if call.args and (by_name or by_method) else None


def _surely_int(index: ModuleIndex, rule: Rule[IntOptions], node: ast.AST, depth: int = 0) -> bool:
    if isinstance(node, ast.Constant):
        return type(node.value) is int
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id == "int":
            return True
        return index.qualified_name(node.func) in rule.options.integers
    if isinstance(node, ast.Name) and depth < 3:
        bindings = index.bindings(node)
        return bool(bindings) and all(_int_binding(index, rule, binding, depth) for binding in bindings)
    return False


def _int_binding(index: ModuleIndex, rule: Rule[IntOptions], binding: Binding, depth: int) -> bool:
    if binding.kind == "param":
        annotation = binding.annotation
        return isinstance(annotation, ast.Name) and annotation.id == "int"
    if binding.kind != "assign" or binding.value is None:
        return False
    index.expand(binding.node)
    return _surely_int(index, rule, binding.value, depth + 1)
