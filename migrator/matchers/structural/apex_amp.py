"""apex.amp: a migration adds a module that has its functions, by torch's autocast and GradScaler.

Where there is none (in lint; in a file that has torch's mixed precision, too) imports and calls are reported.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import partial

from migrator.files.naming import AMP
from migrator.findings.finding import Edit
from migrator.matchers.context import FileContext, Match, found, instead_of
from migrator.matchers.kinds.library import every_import
from migrator.matchers.npu_import import insert_import, statement_separator
from migrator.matchers.packs import Rule
from migrator.matchers.query.uses import is_replaced
from migrator.names.tree import Import, attributes, imported, root
from migrator.project.added_package import Place

_AMP = "apex.amp"
# A file that has torch's own mixed precision beside it, or what the module has not.
BESIDE_APEX = re.compile(r"\bGradScaler\b|\bautocast\b|\bamp\.(?:init|handle|lists|rnn_compat)\b")


def find(context: FileContext, rule: Rule) -> Iterator[Match]:
    """The imports and the uses that need the module, or each import and each call."""
    index = context.index
    every, statement = [*context.uses_of(rule)], context.project.import_of(AMP, context.name)
    if statement and not index.module_scope.bindings.get(AMP) and not BESIDE_APEX.search(index.text):
        yield from _moved(context, rule, every, statement)
        return
    yield from every_import(context, [rule])
    for node, name in every:
        call = index.call_of(node)
        if call is not None and not is_replaced(context, rule, call):
            yield found(context, rule, call, api=name)


def _moved(
    context: FileContext, rule: Rule, every: list[tuple[ast.expr, str]], statement: str
) -> Iterator[Match]:
    """Imports of apex.amp, and its names behind ``apex.``, which need an import beside that of apex."""
    index, place = context.index, context.project.places[context.name]
    changed = partial(found, safety="unsafe", needs_npu=False)
    for node in index.imports:
        fits = any(context.fits(rule, name) for name in imported(node))
        if fits and (edit := _import(context, rule, node, place, statement)):
            yield changed(context, rule, node, api=_AMP, edits=[edit])
    named: dict[ast.expr, ast.AST] = {}  # apex.amp in them, with what imports apex
    for use, name in every:
        own = next((each for each in attributes(use) if index.qualified_name(each) == _AMP), None)
        first = root(use)
        if own is None or not isinstance(first, ast.Name) or index.qualified_name(first) != "apex":
            continue
        for binding in index.bindings(first)[:1]:
            named[first] = binding.node
            yield changed(context, rule, use, api=name, edits=[instead_of(index, own, AMP)])
    for node in dict.fromkeys(each for each in named.values() if isinstance(each, ast.Import)):
        only = len(node.names) == 1 and set(index.uses("apex", index.scope_of(node))) <= set(named)
        edit = instead_of(index, node, statement) if only else insert_import(index, node, statement)
        yield changed(context, rule, node, api=_AMP, edits=[edit])


def _import(context: FileContext, rule: Rule, node: Import, place: Place, statement: str) -> Edit | None:
    """The edit that imports it from the module; None for what binds apex, or has comments between names."""
    index = context.index
    if isinstance(node, ast.ImportFrom) and node.module == _AMP:
        names = ", ".join(map(ast.unparse, node.names))
        return instead_of(index, node, f"from {place.module(AMP)} import {names}")
    gone = [each for each, name in zip(node.names, imported(node)) if rule.fits(name)]
    bound = gone[0].asname or ("" if isinstance(node, ast.Import) else gone[0].name)
    if len(gone) > 1 or not bound or (len(node.names) > 1 and "#" in index.segment(node)):
        return None
    lines = [f"{statement} as {bound}"]
    if kept := ", ".join(ast.unparse(each) for each in node.names if each is not gone[0]):
        lines.insert(
            0, f"from {node.module} import {kept}" if isinstance(node, ast.ImportFrom) else f"import {kept}"
        )
    return instead_of(index, node, statement_separator(index, node).join(lines))
