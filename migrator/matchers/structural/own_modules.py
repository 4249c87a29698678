"""Libraries that NPUs lack, and whose functions a module of ours has: apex.amp, horovod.torch.

In a migration the result gets the module, and imports it in place of the library. Where there is none (in
lint; in a file that has another way beside it) imports and calls are reported, if the rule says so.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import field
from functools import partial

from migrator.findings.finding import Edit
from migrator.matchers.context import FileContext, Match, found, instead_of
from migrator.matchers.kinds.library import every_import
from migrator.matchers.npu_import import insert_import, statement_separator
from migrator.matchers.options import EXPRESSION
from migrator.matchers.packs import Options, Rule
from migrator.matchers.query.uses import is_replaced
from migrator.names.tree import Import, attributes, imported, root


class ModuleOptions(Options):
    """``stands_for``: the library's module in whose place ``module`` is imported.

    ``beside``: what a file has that keeps the library. ``reports``: then its imports and calls are reported.
    """

    module: str = ""
    stands_for: str = ""
    beside: str = field(default="", metadata=EXPRESSION)
    reports: bool = False


ModuleRule = Rule[ModuleOptions]


def find(context: FileContext, rule: ModuleRule) -> Iterator[Match]:
    """The imports and the uses that need the module, or each import and each call."""
    index, options = context.index, rule.options
    every, statement = [*context.uses_of(rule)], context.project.import_of(options.module, context.name)
    is_free = not index.module_scope.bindings.get(options.module)
    if statement and is_free and not re.search(options.beside or r"\Z.", index.text):
        yield from _moved(context, rule, every, statement)
    elif options.reports:
        yield from every_import(context, [rule])
        for node, name in every:
            call = index.call_of(node)
            if call is not None and not is_replaced(context, rule, call):
                yield found(context, rule, call, api=name)


def _moved(
    context: FileContext, rule: ModuleRule, every: list[tuple[ast.expr, str]], statement: str
) -> Iterator[Match]:
    """Imports of the library's module, and its names in full, which need an import beside the library's."""
    index, old, new = context.index, rule.options.stands_for, rule.options.module
    library, changed = old.partition(".")[0], partial(found, safety="unsafe", needs_npu=False)
    for node in index.imports:
        is_its = any(context.fits(rule, name) for name in imported(node))
        if is_its and (edit := _import(context, rule, node, statement)):
            yield changed(context, rule, node, api=old, edits=[edit])
    named: dict[ast.expr, ast.AST] = {}  # the library in them, with what imports it
    for use, name in every:
        own = next((each for each in attributes(use) if index.qualified_name(each) == old), None)
        first = root(use)
        if own is None or not isinstance(first, ast.Name) or index.qualified_name(first) != library:
            continue
        for binding in index.bindings(first)[:1]:
            named[first] = binding.node
            yield changed(context, rule, use, api=name, edits=[instead_of(index, own, new)])
    for node in dict.fromkeys(each for each in named.values() if isinstance(each, ast.Import)):
        only = len(node.names) == 1 and set(index.uses(library, index.scope_of(node))) <= set(named)
        edit = instead_of(index, node, statement) if only else insert_import(index, node, statement)
        yield changed(context, rule, node, api=old, edits=[edit])


def _import(context: FileContext, rule: ModuleRule, node: Import, statement: str) -> Edit | None:
    """The edit that imports it from ours; None for what binds the library, or has comments between names."""
    index, old = context.index, rule.options.stands_for
    if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith(f"{old}."):
        module = context.project.places[context.name].module(rule.options.module)
        return instead_of(index, node, f"from {module} import {', '.join(map(ast.unparse, node.names))}")
    gone = [each for each, name in zip(node.names, imported(node)) if rule.fits(name)]
    bound = gone[0].asname or ("" if isinstance(node, ast.Import) else gone[0].name)
    if len(gone) > 1 or not bound or (len(node.names) > 1 and "#" in index.segment(node)):
        return None
    lines = [f"{statement} as {bound}"]
    if kept := ", ".join(ast.unparse(each) for each in node.names if each is not gone[0]):
        start = f"from {node.module} import" if isinstance(node, ast.ImportFrom) else "import"
        lines.insert(0, f"{start} {kept}")
    return instead_of(index, node, statement_separator(index, node).join(lines))
