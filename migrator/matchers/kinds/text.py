"""Kind ``text``: a phrase inside string literals, such as the message of an error that is tested for."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from migrator.matchers.context import FileContext, Match, found
from migrator.matchers.expressions import EXPRESSION, LONGEST
from migrator.matchers.packs import Options, Rule
from migrator.names.strings import replace_text
from migrator.names.tree import called_name, targets_of

_TESTS = frozenset(
    "startswith endswith find index count search match fullmatch findall compile raises assertRaisesRegex "
    "assertIn assertRegex any all".split()
)


@dataclass(frozen=True)
class TextOptions(Options):
    """Which texts a rule is about.

    ``where``: those that are compared with something (``tests``), every one but docstrings (``anywhere``),
    arguments of ``calls``, or one that is looked for ``beside`` a text with that word. An ``exact`` text is
    nothing but the phrase; ``goes_on`` is a regular expression for what comes behind it.
    """

    where: Literal["tests", "anywhere", "calls", "beside"] = "tests"
    calls: tuple[str, ...] = ()
    beside: str = ""
    exact: bool = False
    goes_on: str = field(default="", metadata=EXPRESSION)


def find(context: FileContext, rules: list[Rule[TextOptions]]) -> Iterator[Match]:
    """Texts that hold a rule's phrase; a message that is only printed or raised is left alone."""
    phrases = sorted(((p, rule) for rule in rules for p in rule.match), key=lambda known: -len(known[0]))
    for node in context.index.strings:
        value = node.value if isinstance(node, ast.Constant) else None
        if not isinstance(value, str) or isinstance(context.index.parent(node), ast.JoinedStr):
            continue
        for phrase, rule in phrases:
            is_there = phrase == value if rule.options.exact else phrase in value
            behind = value.partition(phrase)[2][:LONGEST]
            if not is_there or not re.match(rule.options.goes_on, behind):
                continue
            verdict = _place(context, node, rule)
            if verdict is None:
                continue
            edits = replace_text(context.index, node, phrase, rule.replace) if rule.replace else []
            yield found(context, rule, node, api=phrase, edits=edits, safety=verdict if edits else "")
            break


def _place(context: FileContext, node: ast.AST, rule: Rule[TextOptions]) -> str | None:
    """``safe`` where the text is surely compared, ``unsafe`` where it may be, None where it is a message."""
    where = rule.options.where
    child, parent = node, context.index.parent(node)
    if isinstance(parent, ast.Expr):
        return None
    if where == "anywhere":
        return "safe"
    if where == "calls":
        return "unsafe" if _is_given(context, node, rule.options.calls) else None
    if where == "beside":
        return "unsafe" if _beside(context, node, rule.options.beside) else None
    in_container = False
    while isinstance(parent, (ast.Tuple, ast.List, ast.Set, ast.BoolOp, ast.IfExp)):
        in_container = True
        child, parent = parent, context.index.parent(parent)
    if isinstance(parent, ast.Compare) or (isinstance(parent, ast.keyword) and parent.arg == "match"):
        return "safe"
    if isinstance(parent, ast.Call):
        return "safe" if _called(parent, child) in _TESTS else None
    if isinstance(parent, (ast.comprehension, ast.For)):
        return "unsafe"
    if isinstance(parent, (ast.Assign, ast.AnnAssign)):
        return "unsafe" if in_container or _compared_later(context, parent) else None
    return None


def _is_given(context: FileContext, node: ast.AST, calls: tuple[str, ...]) -> bool:
    """Whether one of some functions is given a value, in a list or by a name, too."""
    child, parent = node, context.index.parent(node)
    if isinstance(parent, (ast.List, ast.keyword)):  # a command, word by word
        child, parent = parent, context.index.parent(parent)
    if isinstance(parent, ast.Call):
        return called_name(parent) in calls and child in (*parent.args, *parent.keywords)
    target = parent.targets[0] if isinstance(parent, ast.Assign) else None
    uses = context.index.uses_of(target) if isinstance(target, ast.Name) else ()
    return any(_called(context.index.parent(use), use) in calls for use in uses)


def _called(call: ast.AST | None, argument: ast.AST) -> str:
    """The last name of what is called with an argument; empty where nothing is."""
    return called_name(call) if isinstance(call, ast.Call) and argument in call.args else ""


def _beside(context: FileContext, node: ast.AST, word: str) -> bool:
    """Whether a text and one with ``word`` are looked for in the same condition."""
    comparison = context.index.parent(node)
    condition = context.index.parent(comparison)
    if not isinstance(comparison, ast.Compare) or not isinstance(condition, ast.BoolOp):
        return False
    others = [value for value in condition.values if value is not comparison]
    return any(word in context.index.segment(other) for other in others)


def _compared_later(context: FileContext, assignment: ast.Assign | ast.AnnAssign) -> bool:
    """Whether a name that is given the text is compared with something."""
    target = targets_of(assignment)[0]
    uses = context.index.uses_of(target) if isinstance(target, ast.Name) else ()
    return any(isinstance(context.index.parent(use), ast.Compare) for use in uses)
