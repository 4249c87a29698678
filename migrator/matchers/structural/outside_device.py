"""Programs that get their device from a command line or a configuration, and name none themselves.

Such a program needs no change but the import of torch_npu, without which torch does not know the device. From
torch 2.5 on torch imports it by itself.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrator.matchers.context import FileContext, Match, insertion
from migrator.matchers.entry import is_entry
from migrator.matchers.npu_import import torch_npu_imports
from migrator.matchers.packs import Rule
from migrator.names.tree import called_name, holder_of, string_value
from migrator.names.values import options_like


def find(context: FileContext, rule: Rule) -> Iterator[Match]:
    """The import for a file that is started; nothing where torch_npu is imported."""
    index = context.index
    if not is_entry(context):
        return
    made = [call for call, _ in context.calls_of(rule) if call.args]
    # A function may be given it by a library that reads the command line.
    outside = [call for call in made if _is_outside(call.args[0]) or index.is_bound_by("param", call.args[0])]
    # model.to(args.device)
    moves = (call for call in index.calls if holder_of(call) is not None and called_name(call) == "to")
    outside += [call for call in moves if call.args and _is_outside(call.args[0])]
    if outside:
        for node, edit in torch_npu_imports(index, outside, context.version.replaces_names):
            yield insertion(context, rule, node, edit)


def _is_outside(device: ast.expr) -> bool:
    """Whether a device is what an option or a setting says."""
    if isinstance(device, ast.Subscript):
        key = string_value(device.slice)
        return key is not None and "device" in key.lower()
    return (
        isinstance(device, ast.Attribute) and "device" in device.attr.lower() and options_like(device.value)
    )
