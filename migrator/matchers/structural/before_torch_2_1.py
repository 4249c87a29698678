"""What torch_npu does in ways of its own before torch 2.1."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Optional

from migrator.language import _
from migrator.matchers.context import FileContext, Match, found, insertion, instead_of
from migrator.matchers.npu_import import names_package, torch_npu_imports
from migrator.matchers.packs import Rule
from migrator.names.index import ModuleIndex
from migrator.names.placement import is_cpu_device
from migrator.names.tree import argument_of, string_value


def find_early_imports(context: FileContext, rule: Rule) -> Iterator[Match]:
    """Names that torch_npu replaces in torch: whoever imported them before has the old ones.

    Of a file that imports such names, and nothing of torch_npu, this goes above the first import of torch.
    """
    index = context.index
    for node in index.imports:
        if not isinstance(node, ast.ImportFrom) or node.level:
            continue
        names = [f"{node.module}.{alias.name}" for alias in node.names]
        replaced = [name for name in names if rule.fits(name)]
        if not replaced:
            continue
        api = ", ".join(replaced)
        for place, edit in torch_npu_imports(index, [node], above=True):
            yield insertion(context, rule, place, edit, api=api)
        below = (other for other in index.behind(node) if isinstance(other, (ast.Import, ast.ImportFrom)))
        if any(names_package(other, "torch_npu") for other in below):
            yield found(context, rule, node, api=api, advice=_("Import torch_npu above it."))
        return


def find_map_locations(context: FileContext, rule: Rule) -> Iterator[Match]:
    """``map_location`` of ``torch.load``: torch_npu's own one makes a string of it, and calls no function.

    One that keeps storages on the CPU becomes ``"cpu"``.
    """
    index = context.index
    for call, api in context.calls_of(rule):
        place = argument_of(call, "map_location", 1 if api == "torch.load" else 2)
        if not isinstance(place, ast.Lambda) or not place.args.args:
            continue
        storage = place.args.args[0].arg
        kept, moved = _moved(place.body, storage)
        if kept:
            edits = [instead_of(index, place, '"cpu"')]
            yield found(context, rule, place, api=api, edits=edits)
        elif not moved or not _is_current(context, moved):
            yield found(context, rule, place, api=api)


def _moved(body: ast.expr, storage: str) -> tuple[bool, Optional[ast.Call]]:
    """Whether a function leaves its storage on the CPU, and otherwise the call that moves it."""
    if isinstance(body, ast.Name):
        return body.id == storage, None
    if not isinstance(body, ast.Call) or not isinstance(body.func, ast.Attribute):
        return False, None
    if not isinstance(body.func.value, ast.Name) or body.func.value.id != storage:
        return False, None
    if body.func.attr == "cpu":
        return True, None
    return False, body if body.func.attr in ("cuda", "npu") else None


def _is_current(context: FileContext, moved: ast.Call) -> bool:
    """Whether storages go to the current NPU, as they do anyway."""
    return all(context.index.segment(each) in context.project.program.set_devices for each in moved.args)


def find_generators(context: FileContext, rule: Rule) -> Iterator[Match]:
    """``torch.Generator("cuda")``: only torch_npu's own class makes one for an NPU.

    Where the device may be an NPU, that is reported.
    """
    index = context.index
    for call, api in context.calls_of(rule):
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
