"""Kind ``call``: calls of an API that has a better counterpart, or that deserve advice."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from migrator.analysis.hints import called_name
from migrator.engine.context import FileContext, Found, found
from migrator.engine.matching import rule_fits
from migrator.engine.packs import Rule
from migrator.finding import Edit


def find(context: FileContext, rules: list[Rule]) -> Iterator[Found]:
    """Calls of the rules' APIs by their qualified names, methods of tensors as ``.name``.

    Options: ``has`` and ``has_not`` (keywords of which a call must have one, or must have none), ``takes``
    (qualified names of which one must be an argument), ``once`` (only the first call of a file). With
    ``replace`` the call is renamed, but only where all its keywords are in ``keeps``, it has at most
    ``positions`` positional arguments, and the file has none of the words in ``not_beside``.
    """
    once: set[str] = set()
    for call in sorted(context.index.calls, key=context.index.start):
        name = context.index.qualified_name(call.func)
        method = f".{call.func.attr}" if isinstance(call.func, ast.Attribute) else ""
        for rule in rules:
            if (name and rule_fits(rule, name)) or (not name and method and method in rule.match):
                if rule.code not in once and _wanted(context, call, rule.options):
                    if rule.options.get("once"):
                        once.add(rule.code)
                    edits = _renaming(context, rule, call)
                    form = "function" if name.startswith(".") or not name else "torch"
                    yield found(context, rule, call, api=name or method, edits=edits, form=form)


def _wanted(context: FileContext, call: ast.Call, options: Any) -> bool:
    given = {keyword.arg for keyword in call.keywords if not _is_off(keyword.value)}
    if "has" in options and given.isdisjoint(options["has"]):
        return False
    if "takes" in options:
        values = [*call.args, *(keyword.value for keyword in call.keywords)]
        names = {context.index.qualified_name(v) for v in values if isinstance(v, (ast.Name, ast.Attribute))}
        if names.isdisjoint(options["takes"]):
            return False
    return given.isdisjoint(options.get("has_not", ()))


def _is_off(node: Any) -> bool:
    return isinstance(node, ast.Constant) and node.value in (False, None)


def _renaming(context: FileContext, rule: Rule, call: ast.Call) -> list[Edit]:
    if not rule.replace or any(isinstance(argument, ast.Starred) for argument in call.args):
        return []
    options = rule.options
    keywords = {keyword.arg for keyword in call.keywords}
    if not keywords <= set(options.get("keeps", ())) or len(call.args) > int(options.get("positions", 1)):
        return []
    if any(word in context.index.text for word in options.get("not_beside", ())):
        return []
    return [
        Edit(
            context.index.start(call.func),
            context.index.end(call.func),
            rule.replace.replace("{name}", called_name(call)),
        )
    ]
