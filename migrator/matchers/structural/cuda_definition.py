"""A class of the project that defines ``cuda`` (or ``is_cuda``) for tensors moves with its callers."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrator.findings.finding import Edit
from migrator.matchers.context import FileContext, Match, found, instead_of
from migrator.matchers.packs import Rule
from migrator.names.tree import FUNCTIONS, Function, called_name, string_value, walk


def find(context: FileContext, rule: Rule) -> Iterator[Match]:
    """``def cuda`` becomes ``def npu``, unless the class has nothing to do with torch.

    All definitions of the name (a property and its setter) and what the class
    body says of it (``to_gpu = cuda``) move in one fix; tables of its methods with them.
    """
    for owner in context.index.classes:
        methods = [item for item in owner.body if isinstance(item, FUNCTIONS)]
        names = {item.name for item in methods}
        for old in rule.match:
            new = old.replace("cuda", "npu")
            if old in names and new not in names and _is_related(context, owner):
                definitions = [item for item in methods if item.name == old]
                yield _renamed(context, rule, owner, definitions, old, new)
                yield from _in_tables(context, rule, owner, old, new)


def _is_related(context: FileContext, owner: ast.ClassDef) -> bool:
    mine = (f for f in context.project.classes if f.name == owner.name and f.file == context.name)
    facts = next(mine, None)
    return facts is not None and context.project.related(facts)


def _renamed(
    context: FileContext, rule: Rule, owner: ast.ClassDef, definitions: list[Function], old: str, new: str
) -> Match:
    index = context.index
    edits = []
    for item in definitions:
        behind_def = index.data.index(b"def", index.start(item)) + 3
        start = index.data.index(old.encode(), behind_def)
        edits.append(Edit(start, start + len(old), new))
    first = edits[0]
    scope = index.scope_of(definitions[0])
    for use in index.uses_of(definitions[0]):
        if index.scope_of(use) is scope:  # @is_cuda.setter, gpu = property(is_cuda)
            edits.append(instead_of(index, use, new))
    edits = sorted(edits, key=lambda edit: edit.start)
    span = (first.start, first.end)
    return found(context, rule, definitions[0], api=f"{owner.name}.{old}", edits=edits, span=span)


def _in_tables(context: FileContext, rule: Rule, owner: ast.ClassDef, old: str, new: str) -> Iterator[Match]:
    """The name in tables of the class that also name another method: ``docs = dict(cpu=…, cuda=…)``."""
    index = context.index
    others = {item.name for item in owner.body if isinstance(item, FUNCTIONS)} - {old}
    for statement in owner.body:
        if isinstance(statement, (ast.Assign, ast.AnnAssign)):
            index.expand(statement)
            for table in walk(statement):
                names = _names(table)
                if not others.isdisjoint(name for name, _ in names):
                    for name, node in names:
                        if name == old:
                            start = index.data.index(old.encode(), index.start(node))
                            edit = Edit(start, start + len(old), new)
                            api = f"{owner.name}.{old}"
                            yield found(context, rule, node, api=api, edits=[edit])


def _names(table: ast.AST) -> list[tuple[str, ast.AST]]:
    """What a table names, each with its node: keywords of ``dict(…)``, keys, or the texts of a list."""
    if isinstance(table, ast.Call) and called_name(table) == "dict":
        return [(keyword.arg or "", keyword) for keyword in table.keywords]
    texts = table.keys if isinstance(table, ast.Dict) else getattr(table, "elts", ())
    return [(string_value(text) or "", text) for text in texts if text is not None]
