"""``nn.DataParallel`` does not work over several NPUs in one process."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrator.findings.finding import Edit
from migrator.language import _
from migrator.matchers.context import FileContext, Match, found, instead_of, put_around
from migrator.matchers.kinds.argument import added_argument
from migrator.matchers.packs import Rule
from migrator.names.tree import argument_of, hands_on, is_none


def find(context: FileContext, rule: Rule) -> Iterator[Match]:
    """Keep the wrapper (``.module`` and checkpoints stay as they are) on a single device."""
    index = context.index
    for base in [base for owner in index.classes for base in owner.bases]:
        if index.qualified_name(base) in rule.match:
            message = _("DataParallel and classes derived from it do not work on several NPUs")
            yield found(context, rule, base, api=index.qualified_name(base), message=message)
    for call, name in context.calls_of(rule):
        if hands_on(call):
            yield found(context, rule, call, api=name)
            continue
        ids = argument_of(call, "device_ids", 1)
        edits: list[Edit] = []
        if ids is None:
            edits = added_argument(index, call, "device_ids", "[0]")
        elif is_none(ids):
            edits = [instead_of(index, ids, "[0]")]
        elif isinstance(ids, (ast.List, ast.Tuple)):
            if len(ids.elts) > 1 and not isinstance(ids.elts[0], ast.Starred):
                comma = "," if isinstance(ids, ast.Tuple) else ""
                edits = [Edit(index.end(ids.elts[0]), index.end(ids.elts[-1]), comma)]
        elif not _is_first_only(ids):
            # Without device ids torch takes every card, so None has to become a card as well.
            plain = isinstance(ids, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
            around = ("list(", " or [0])[:1]") if plain else ("list((", ") or [0])[:1]")
            edits = put_around(index, ids, *around)
        if edits:
            yield found(context, rule, call, api=name, edits=edits)


def _is_first_only(node: ast.AST) -> bool:
    """Whether an expression is already cut down: ``(ids or [0])[:1]``."""
    if not (isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice)):
        return False
    upper, lower = node.slice.upper, node.slice.lower
    return lower is None and isinstance(upper, ast.Constant) and upper.value == 1
