"""The edits that add arguments, and those that take out arguments, entries of a dictionary, a statement."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Sequence
from typing import Union

from migrator.findings.finding import Edit
from migrator.names.index import ModuleIndex
from migrator.names.tree import arguments_of

Argument = Union[ast.expr, ast.keyword]
Span = tuple[int, int]
_EQUALS = re.compile(rb"\s*=\s*")
# What stands behind a call's last argument: comments, parentheses around the argument, a trailing comma.
_MARKS = re.compile(rb"#[^\r\n]*|[),]")


def without_arguments(index: ModuleIndex, call: ast.Call, gone: Collection[Argument]) -> list[Edit] | None:
    """The edits that take arguments out of a call; None where a comment or a parenthesis stands between."""
    given: list[Argument] = sorted([*call.args, *call.keywords], key=index.start)
    kept = [each for each in given if each not in gone]
    if not kept:
        inside = Edit(index.end(call.func), index.end(call), "()")
        return None if b"#" in index.data[inside.start : inside.end] else [inside]
    return _taken_out(index, [index.span(each) for each in given], [each in gone for each in given])


def without_entries(index: ModuleIndex, entries: ast.Dict, gone: Collection[ast.expr]) -> list[Edit] | None:
    """The edits that take the entries with some keys out of a dictionary; None as for arguments."""
    start, end = index.span(entries)
    keys = [key for key in entries.keys if key is not None]
    if len(keys) < len(entries.keys):  # the value of **more has no place for its stars
        return None
    if all(key in gone for key in keys):
        return None if b"#" in index.data[start:end] else [Edit(start + 1, end - 1, "")]
    spans = [(index.start(key), index.end(value)) for key, value in zip(keys, entries.values)]
    return _taken_out(index, spans, [key in gone for key in keys])


def _taken_out(index: ModuleIndex, spans: Sequence[Span], gone: Sequence[bool]) -> list[Edit] | None:
    """The edits that take some parts out of a list of parts with commas, which others stay in."""
    edits = []
    for place, (start, end) in enumerate(spans):
        if gone[place]:
            # With the comma behind the one before it; of the first ones, with their own.
            first = all(gone[:place])
            around = (end, spans[place + 1][0]) if first else (spans[place - 1][1], start)
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


def without_keyword(
    index: ModuleIndex, call: ast.Call, keyword: ast.keyword, position: int
) -> list[Edit] | None:
    """The edit that takes the keyword away; None where the value would stand at another place then."""
    if len(call.args) != position or call.keywords[0] is not keyword:
        return None
    start = index.start(keyword)
    sign = _EQUALS.match(index.data, start + len(keyword.arg or ""))
    return [Edit(start, sign.end(), "")] if sign else None


def added_argument(index: ModuleIndex, call: ast.Call, keyword: str, value: str) -> list[Edit]:
    """The edits that add an argument at a call's end.

    A trailing comma, comments and line breaks inside the call stay as they are.
    """
    text = f"{keyword}={value}" if keyword else value
    closing = index.end(call) - 1
    arguments = arguments_of(call)
    if not arguments:
        return [Edit(closing, closing, text)]
    last = max(arguments, key=index.end)
    end = index.end(last)
    if end > closing:  # a bare generator shares its parentheses with the call
        start = index.start(last)
        return [Edit(start, start, "("), Edit(end, end, f", {text})")]
    trailing_comma = False
    # Parentheses around the last argument belong to it.
    for mark in _MARKS.finditer(index.data, end, closing):
        if not mark[0].startswith(b"#"):
            end, trailing_comma = mark.end(), mark[0] == b","
    return [Edit(end, end, f" {text}," if trailing_comma else f", {text}")]
