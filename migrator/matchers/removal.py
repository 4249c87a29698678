"""The edits that take something out: arguments of a call, a whole statement."""

from __future__ import annotations

import ast
from collections.abc import Collection
from typing import Union

from migrator.findings.finding import Edit
from migrator.names.index import ModuleIndex

Argument = Union[ast.expr, ast.keyword]


def without_arguments(index: ModuleIndex, call: ast.Call, gone: Collection[Argument]) -> list[Edit] | None:
    """The edits that take arguments out of a call; None where a comment or a parenthesis stands between."""
    given: list[Argument] = sorted([*call.args, *call.keywords], key=index.start)
    kept = [each for each in given if each not in gone]
    if not kept:
        inside = Edit(index.end(call.func), index.end(call), "()")
        return None if b"#" in index.data[inside.start : inside.end] else [inside]
    edits = []
    for place, each in enumerate(given):
        if each not in gone:
            continue
        # With the comma behind the one before it; of the first ones, with their own.
        first = all(earlier in gone for earlier in given[:place])
        start, end = index.span(each)
        around = (end, index.start(given[place + 1])) if first else (index.end(given[place - 1]), start)
        if index.data[slice(*around)].strip() != b",":
            return None
        edits.append(Edit(start, around[1], "") if first else Edit(around[0], end, ""))
    return edits


def without_statement(index: ModuleIndex, statement: ast.stmt, gone: Collection[ast.AST] = ()) -> Edit:
    """The edit that takes a statement out with its line; where that cannot be, ``pass`` stands for it.

    So it is where none of its block stays; others that go are ``gone``.
    """
    start, end = index.span(statement)
    before, behind = index.lines.beside((start, end))
    stays = any(each is not statement and each not in gone for each in index.block(statement))
    if stays and not (before + behind).strip():
        return Edit(start - len(before), end + len(behind), "")
    return Edit(start, end, "pass")
