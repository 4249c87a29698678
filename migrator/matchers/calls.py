"""Calls that a rule is about, and their arguments."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Optional

from migrator.findings.finding import Edit
from migrator.matchers.dotted import rule_fits
from migrator.matchers.packs import Rule
from migrator.names.index import ModuleIndex


def calls_of(index: ModuleIndex, rule: Rule) -> Iterator[tuple[ast.Call, str]]:
    """The calls of what a rule's ``match`` names, each with its qualified name."""
    for call in index.calls:
        name = index.qualified_name(call.func)
        if name and rule_fits(rule, name):
            yield call, name


def hands_on(call: ast.Call) -> bool:
    """Whether a call has ``*args`` or ``**kwargs``: then it is not known which arguments it gives."""
    return any(isinstance(item, ast.Starred) for item in call.args) or any(
        k.arg is None for k in call.keywords
    )


def argument_of(call: ast.Call, keyword: str, position: Optional[int] = None) -> Optional[ast.expr]:
    """The value of an argument, by its keyword or its place; None where it is not given."""
    by_keyword = (item.value for item in call.keywords if item.arg == keyword)
    by_place = call.args[position] if position is not None and len(call.args) > position else None
    return next(by_keyword, by_place)


def without_argument(index: ModuleIndex, call: ast.Call, keyword: ast.keyword) -> Optional[list[Edit]]:
    """The edit that takes a keyword argument away; None for the only one, and where a comment is near."""
    arguments = sorted((*call.args, *call.keywords), key=index.start)
    place = arguments.index(keyword)
    start, end = index.start(keyword), index.end(keyword)
    if place:
        before = index.data[:start].rstrip()
        return [Edit(len(before) - 1, end, "")] if before.endswith(b",") else None
    if len(arguments) == 1:
        return None
    following = index.start(arguments[1])
    between = index.data[end:following].strip()
    return [Edit(start, following, "")] if between == b"," else None
