"""Calls that a rule is about, and their arguments."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Optional

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
