"""Classes of autograd functions as an old torch took them: newer ones raise when they are called."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrator.matchers.context import FileContext, Match, found
from migrator.matchers.packs import Rule


def find_legacy_functions(context: FileContext, rule: Rule) -> Iterator[Match]:
    """Classes of autograd functions whose ``forward`` is no static method, where one is made and called."""
    index = context.index
    for owner in index.classes:
        bases = [index.qualified_name(base) for base in owner.bases]
        name = next((each for each in bases if each in rule.match), "")
        forward = next((item for item in owner.body if getattr(item, "name", "") == "forward"), None)
        if not name or not isinstance(forward, ast.FunctionDef) or forward.decorator_list:
            continue
        start = index.start(forward)
        span = (start, start + len("def forward"))
        yield found(context, rule, forward, api=name, span=span)
