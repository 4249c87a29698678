"""``cfg = get_cfg()`` of detectron2: ``cfg.MODEL.DEVICE`` is "cuda" until something else is assigned."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrator.matchers.context import FileContext, Match, found
from migrator.matchers.dotted import calls_of
from migrator.matchers.npu_import import insert_import
from migrator.matchers.packs import Rule
from migrator.names.index import ModuleIndex


def find(context: FileContext, rule: Rule) -> Iterator[Match]:
    """Configurations that no statement of the same block gives a device; the next line gives it the NPU."""
    index = context.index
    for call, api in calls_of(index, rule):
        if context.project.owns(api, context.name):
            continue
        statement = index.parent(call)
        if not isinstance(statement, ast.Assign) or not _is_name(statement):
            yield found(context, rule, call, api=api)
            continue
        device = f"{ast.unparse(statement.targets[0])}.MODEL.DEVICE"
        if not any(_assigns(index, each, device) for each in index.block(statement)):
            edits = [insert_import(index, statement, f'{device} = "npu"')]
            yield found(context, rule, call, api=api, edits=edits)


def _is_name(statement: ast.Assign) -> bool:
    return len(statement.targets) == 1 and isinstance(statement.targets[0], (ast.Name, ast.Attribute))


def _assigns(index: ModuleIndex, statement: ast.AST, name: str) -> bool:
    if not isinstance(statement, ast.Assign):
        return False
    return any(ast.unparse(target) == name for target in statement.targets)
