"""A class of the project that defines ``cuda`` (or ``is_cuda``) for tensors moves with its callers."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrator.engine.context import FileContext, Found, found
from migrator.engine.finding import Edit
from migrator.engine.packs import Rule

_NEW = {"cuda": "npu", "is_cuda": "is_npu"}


def find(context: FileContext, rule: Rule) -> Iterator[Found]:
    """``def cuda`` becomes ``def npu``, unless the class has nothing to do with torch."""
    index = context.index
    for owner in index.classes:
        defined = {
            item.name for item in owner.body if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef))
        }
        for item in owner.body:
            if not isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef)) or item.name not in _NEW:
                continue
            facts = next(
                (f for f in context.project.classes if f.name == owner.name and f.file == context.name), None
            )
            if facts is None or not context.project.related(facts) or _NEW[item.name] in defined:
                continue
            start = index.data.index(item.name.encode(), _after_def(index.data, index.start(item)))
            edit = Edit(start, start + len(item.name), _NEW[item.name])
            yield found(
                context,
                rule,
                item,
                api=f"{owner.name}.{item.name}",
                edits=[edit],
                needs_npu=False,
                span=(start, start + len(item.name)),
            )


def _after_def(data: bytes, start: int) -> int:
    return data.index(b"def", start) + 3
