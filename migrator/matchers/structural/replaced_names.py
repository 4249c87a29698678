"""Names that torch_npu replaces in torch before torch 2.1: whoever imported them before has the old ones."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrator.language import _
from migrator.matchers.context import FileContext, Match, found, insertion
from migrator.matchers.dotted import rule_fits
from migrator.matchers.npu_import import names_package, torch_npu_imports
from migrator.matchers.packs import Rule
from migrator.names.index import ModuleIndex
from migrator.names.tree import Import


def find(context: FileContext, rule: Rule) -> Iterator[Match]:
    """A file that imports such names, and nothing of torch_npu: it goes above the first import of torch."""
    index = context.index
    for node in index.imports:
        if not isinstance(node, ast.ImportFrom) or node.level:
            continue
        names = [f"{node.module}.{alias.name}" for alias in node.names]
        replaced = [name for name in names if rule_fits(rule, name)]
        if not replaced:
            continue
        api = ", ".join(replaced)
        for place, edit in torch_npu_imports(index, [node], above=True):
            yield insertion(context, rule, place, edit, api=api)._replace(needs_npu=False)
        if any(
            names_package(other, "torch_npu") and _is_below(index, other, node) for other in index.imports
        ):
            yield found(context, rule, node, api=api, advice=_("Import torch_npu above it."))
        return


def _is_below(index: ModuleIndex, other: Import, node: Import) -> bool:
    """Whether an import stands behind another one in the same block."""
    return other in index.block(node) and index.start(other) > index.start(node)
