"""``torch.Generator("cuda")`` before torch 2.1: only torch_npu's own class makes one for an NPU."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrator.language import _
from migrator.matchers.context import FileContext, Match, found, instead_of
from migrator.matchers.dotted import calls_of
from migrator.matchers.packs import Rule
from migrator.names.index import ModuleIndex
from migrator.names.placement import is_cpu_device
from migrator.names.tree import argument_of, string_value


def find(context: FileContext, rule: Rule) -> Iterator[Match]:
    """The class is another one where the device is surely an NPU; where it may be one, that is reported."""
    index = context.index
    for call, api in calls_of(index, rule):
        device = argument_of(call, "device", 0)
        if device is None or is_cpu_device(index, device):
            continue
        if _is_npu(index, device):
            yield found(
                context, rule, call, api=api, edits=[instead_of(index, call.func, "torch_npu._C.Generator")]
            )
        else:
            message = _("before torch 2.1, torch.Generator raises if this device is an NPU")
            advice = _("In that case write torch_npu._C.Generator(device).")
            yield found(context, rule, call, api=api, message=message, advice=advice, severity="warning")


def _is_npu(index: ModuleIndex, device: ast.expr) -> bool:
    """Whether a device is written as one for CUDA or an NPU."""
    if isinstance(device, ast.Call) and index.qualified_name(device.func) == "torch.device" and device.args:
        device = device.args[0]
    if isinstance(device, ast.JoinedStr) and device.values:
        device = device.values[0]
    return (string_value(device) or "").startswith(("cuda", "npu"))
