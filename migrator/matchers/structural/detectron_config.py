"""``cfg = get_cfg()`` of detectron2: ``cfg.MODEL.DEVICE`` is "cuda" until something else is assigned."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrator.matchers.context import FileContext, Match, found, insertion
from migrator.matchers.npu_import import insert_import
from migrator.matchers.packs import Rule
from migrator.names.tree import only_target


def find(context: FileContext, rule: Rule) -> Iterator[Match]:
    """Configurations that no statement of the same block gives a device; the next line gives it the NPU."""
    index = context.index
    for call, api in context.calls_of(rule):
        if context.project.owns(api, context.name):
            continue
        statement = index.parent(call)
        target = only_target(statement)
        if not isinstance(statement, ast.stmt) or not isinstance(target, (ast.Name, ast.Attribute)):
            yield found(context, rule, call, api=api)
            continue
        device = f"{ast.unparse(target)}.MODEL.DEVICE"
        assigned = (each.targets for each in index.block(statement) if isinstance(each, ast.Assign))
        if device not in (ast.unparse(each) for targets in assigned for each in targets):
            edit = insert_import(index, statement, f'{device} = "npu"')
            yield insertion(context, rule, call, edit, api=api, safety="unsafe")
