"""A class of the project that defines ``cuda`` (or ``is_cuda``) for tensors moves with its callers."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrator.findings.finding import Edit
from migrator.matchers.context import FileContext, Match, found, instead_of
from migrator.matchers.packs import Rule
from migrator.names.index import ModuleIndex
from migrator.names.tree import FUNCTIONS, called_name, string_value, walk


def find(context: FileContext, rule: Rule) -> Iterator[Match]:
    """``def cuda`` becomes ``def npu``, unless the class has nothing to do with torch.

    All definitions of the name (a property and its setter) and what the class
    body says of it (``to_gpu = cuda``) move in one fix; tables of its methods with them.
    """
    index = context.index
    for owner in index.classes:
        methods = [item for item in owner.body if isinstance(item, FUNCTIONS)]
        names = {item.name for item in methods}
        for old in rule.match:
            new = old.replace("cuda", "npu")
            if old not in names or new in names or not _is_related(context, owner):
                continue
            edits = []
            definitions = [item for item in methods if item.name == old]
            for item in definitions:
                start = index.data.index(old.encode(), index.data.index(b"def", index.start(item)) + 3)
                edits.append(Edit(start, start + len(old), new))
            span, scope = (edits[0].start, edits[0].end), index.scope_of(definitions[0])
            # @is_cuda.setter, gpu = property(is_cuda)
            uses = (use for use in index.uses_of(definitions[0]) if index.scope_of(use) is scope)
            edits = sorted(
                [*edits, *(instead_of(index, use, new) for use in uses)], key=lambda edit: edit.start
            )
            api = f"{owner.name}.{old}"
            yield found(context, rule, definitions[0], api=api, edits=edits, span=span)
            for node in _in_tables(index, owner, old, names - {old}):
                start = index.data.index(old.encode(), index.start(node))
                yield found(context, rule, node, api=api, edits=[Edit(start, start + len(old), new)])


def _is_related(context: FileContext, owner: ast.ClassDef) -> bool:
    mine = (f for f in context.project.classes if f.name == owner.name and f.file == context.name)
    facts = next(mine, None)
    return facts is not None and context.project.related(facts)


def _in_tables(index: ModuleIndex, owner: ast.ClassDef, old: str, others: set[str]) -> Iterator[ast.AST]:
    """The name in tables of the class that also name another method: ``docs = dict(cpu=…, cuda=…)``."""
    for statement in owner.body:
        if isinstance(statement, (ast.Assign, ast.AnnAssign)):
            index.expand(statement)
            for names in map(_names, walk(statement)):
                if not others.isdisjoint(name for name, _node in names):
                    yield from (node for name, node in names if name == old)


def _names(table: ast.AST) -> list[tuple[str, ast.AST]]:
    """What a table names, each with its node: keywords of ``dict(…)``, keys, or the texts of a list."""
    if isinstance(table, ast.Call) and called_name(table) == "dict":
        return [(keyword.arg or "", keyword) for keyword in table.keywords]
    texts = table.keys if isinstance(table, ast.Dict) else getattr(table, "elts", ())
    return [(string_value(text) or "", text) for text in texts if text is not None]
