"""Rules that write only an import, by what the whole file or project says."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrator.language import _
from migrator.matchers.context import FileContext, Match, found, insertion
from migrator.matchers.npu_import import names_package, torch_npu_imports
from migrator.matchers.packs import Rule
from migrator.names.tree import called_name, holder_of, string_value
from migrator.names.what_is import options_like


def find_outside_devices(context: FileContext, rule: Rule) -> Iterator[Match]:
    """Programs that get their device from a command line or a configuration, and name none themselves.

    A file that is started needs the import of torch_npu, without which torch does not know the device. From
    torch 2.5 on torch imports it by itself.
    """
    index = context.index
    if not context.is_entry():
        return
    made = [call for call, _ in context.calls_of(rule) if call.args]
    # A function may be given it by a library that reads the command line.
    outside = [call for call in made if _is_outside(call.args[0]) or index.is_bound_by("param", call.args[0])]
    # model.to(args.device)
    moves = (call for call in index.calls if holder_of(call) is not None and called_name(call) == "to")
    outside += [call for call in moves if call.args and _is_outside(call.args[0])]
    for node, edit in torch_npu_imports(index, outside, context.version.replaces_names) if outside else ():
        yield insertion(context, rule, node, edit)


def _is_outside(device: ast.expr) -> bool:
    """Whether a device is what an option or a setting says."""
    if isinstance(device, ast.Subscript):
        key = string_value(device.slice)
        return key is not None and "device" in key.lower()
    return (
        isinstance(device, ast.Attribute) and "device" in device.attr.lower() and options_like(device.value)
    )


def find_early_imports(context: FileContext, rule: Rule) -> Iterator[Match]:
    """Names that torch_npu replaces in torch before 2.1: whoever imported them before has the old ones.

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
