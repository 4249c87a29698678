"""Names that torch_npu replaces in torch before torch 2.1: whoever imported them before has the old ones."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from migrator.matchers.context import FileContext, Match, insertion
from migrator.matchers.dotted import rule_fits
from migrator.matchers.npu_import import torch_npu_imports
from migrator.matchers.packs import Rule


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
        for place, edit in torch_npu_imports(index, [node], above=True):
            item = insertion(context, rule, place, edit, api=", ".join(replaced))
            yield replace(item, needs_npu=False)
        return
