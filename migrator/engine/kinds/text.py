"""Kind ``text``: a phrase inside string literals, such as the message of an error that is tested for."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from migrator.analysis.strings import replace_text
from migrator.engine.context import FileContext, Found, found
from migrator.engine.packs import Rule

_TESTS = frozenset(
    "startswith endswith find index count search match fullmatch findall compile raises assertRaisesRegex "
    "assertIn assertRegex any all".split()
)


def find(context: FileContext, rules: list[Rule]) -> Iterator[Found]:
    """Texts that hold a rule's phrase and are compared with something.

    A message that is only printed or raised is left alone. Option ``where:
    anywhere`` takes every text but docstrings.
    """
    for node in context.index.strings:
        value = node.value if isinstance(node, ast.Constant) else None
        if not isinstance(value, str) or isinstance(getattr(node, "parent", None), ast.JoinedStr):
            continue
        for rule in rules:
            phrase = next((phrase for phrase in rule.match if phrase in value), None)
            if phrase is None:
                continue
            verdict = _place(node, str(rule.options.get("where", "tests")))
            if verdict is None:
                continue
            edits = replace_text(context.index, node, phrase, rule.replace) if rule.replace else []
            yield found(
                context,
                rule,
                node,
                api=phrase,
                edits=edits,
                safety=verdict if edits else "",
                needs_npu=bool(rule.options.get("needs_npu", False)),
            )
            break


def _place(node: Any, where: str) -> str | None:
    """``safe`` where the text is surely compared, ``unsafe`` where it may be, None where it is a message."""
    child, parent = node, getattr(node, "parent", None)
    if isinstance(parent, ast.Expr):
        return None
    if where == "anywhere":
        return "safe"
    in_container = False
    while isinstance(parent, (ast.Tuple, ast.List, ast.Set, ast.BoolOp, ast.IfExp)):
        in_container = True
        child, parent = parent, getattr(parent, "parent", None)
    if isinstance(parent, ast.Compare):
        return "safe"
    if isinstance(parent, ast.keyword) and parent.arg == "match":
        return "safe"
    if isinstance(parent, ast.Call) and child in parent.args:
        function: Any = parent.func
        called = getattr(function, "attr", getattr(function, "id", ""))
        return "safe" if called in _TESTS else None
    if isinstance(parent, (ast.comprehension, ast.For)):
        return "unsafe"
    if isinstance(parent, (ast.Assign, ast.AnnAssign)) and in_container:
        return "unsafe"
    return None
