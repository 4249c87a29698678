"""``if x.device.type == "cpu"``, where the rest goes to CUDA operators: an NPU has to take the CPU's way."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Optional

from migrator.findings.finding import Edit
from migrator.matchers.context import FileContext, Match, found
from migrator.matchers.packs import Rule
from migrator.matchers.structural.cuda_operators import find_uses
from migrator.names.index import ModuleIndex
from migrator.names.strings import replace_text
from migrator.names.tree import String, bare_name, called_name
from migrator.names.ways import operator_uses, prefers_operators

_OTHER = {ast.Eq: "!=", ast.NotEq: "=="}


def find(context: FileContext, rule: Rule) -> Iterator[Match]:
    """Comparisons of a device with the CPU that choose between CUDA operators and another way."""
    index = context.index
    asked = [node for node in index.strings if _is_cpu(node) and _compares_device(index, node)]
    uses = [item.node for item in find_uses(context, rule)] if asked else []
    operators = operator_uses(index, uses) if uses else set()
    for node in asked if operators else ():
        if prefers_operators(index, node, operators):
            compare = index.parent(node)
            edits = _for_all_but_cuda(index, compare, node) if isinstance(compare, ast.Compare) else None
            where = compare or node
            api = index.segment(where)
            yield found(context, rule, where, api=api, edits=edits or (), needs_npu=False)


def _is_cpu(node: String) -> bool:
    return isinstance(node, ast.Constant) and node.value == "cpu"


def _compares_device(index: ModuleIndex, node: String) -> bool:
    """``x.device.type == "cpu"``, ``str(x.device) != "cpu"``."""
    compare = index.parent(node)
    if not isinstance(compare, ast.Compare) or len(compare.ops) != 1 or compare.comparators[0] is not node:
        return False
    left = compare.left
    if called_name(left) == "str" and isinstance(left, ast.Call) and left.args:
        left = left.args[0]
    is_type = isinstance(left, ast.Attribute) and left.attr == "type"
    device = left.value if is_type and isinstance(left, ast.Attribute) else left
    return type(compare.ops[0]) in _OTHER and bare_name(device) in ("device", "get_device")


def _for_all_but_cuda(index: ModuleIndex, compare: ast.Compare, node: String) -> Optional[list[Edit]]:
    """The edits that make it a question for CUDA, which an NPU answers as the CPU does."""
    start, end = index.end(compare.left), index.start(node)
    between = index.data[start:end]
    written = between.strip()
    if written not in (b"==", b"!="):
        return None
    start += between.index(written)
    operator = Edit(start, start + len(written), _OTHER[type(compare.ops[0])])
    return [operator, *replace_text(index, node, "cpu", "cuda", 1)]
