"""Integer devices, for torch versions that take them for CUDA devices."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrator.matchers.context import ONLY_BY_NAME, FileContext, Match, found
from migrator.matchers.packs import Options, Rule
from migrator.matchers.whole_numbers import as_device, likely_int, surely_int
from migrator.names.index import ModuleIndex


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
        if node is None:
            continue
        certainty = "" if surely_int(index, rule.options.integers, node) else ONLY_BY_NAME
        if not certainty or likely_int(index, node):
            edits = as_device(index, node)
            yield found(context, rule, node, api="int device", edits=edits, certainty=certainty)


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
