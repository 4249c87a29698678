"""``map_location`` of ``torch.load`` before torch 2.1: torch_npu's own one makes a string of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Optional

from migrator.matchers.context import FileContext, Match, found, instead_of
from migrator.matchers.dotted import calls_of
from migrator.matchers.packs import Rule
from migrator.names.tree import argument_of


def find(context: FileContext, rule: Rule) -> Iterator[Match]:
    """Functions, which it does not call: one that keeps storages on the CPU becomes ``"cpu"``."""
    index = context.index
    for call, api in calls_of(index, rule):
        place = argument_of(call, "map_location", 1 if api == "torch.load" else 2)
        if not isinstance(place, ast.Lambda) or not place.args.args:
            continue
        storage = place.args.args[0].arg
        kept, moved = _moved(place.body, storage)
        if kept:
            edits = [instead_of(index, place, '"cpu"')]
            yield found(context, rule, place, api=api, edits=edits, needs_npu=False)
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
