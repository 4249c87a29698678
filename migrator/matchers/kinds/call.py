"""Kind ``call``: calls of an API that has a better counterpart, or that deserve advice."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from migrator.findings.finding import Edit
from migrator.matchers.context import FileContext, Match, found
from migrator.matchers.dotted import rule_fits
from migrator.matchers.packs import Rule
from migrator.names.hints import called_name


def find(context: FileContext, rules: list[Rule]) -> Iterator[Match]:
    """Calls of the rules' APIs by their qualified names, methods of tensors as ``.name``.

    Options: ``has`` and ``has_not`` (keywords of which a call must have one, or must have none), ``takes``
    (qualified names of which one must be an argument), ``on`` (keywords that must not be switched off),
    ``unless`` (keywords with the value that rules a call out), ``once`` (only the first call of a
    ``function`` or ``file``). With ``replace`` the call is renamed, but only where the first argument is a
    call of a method ``of`` that name, all keywords are in ``keeps``, there are at most ``positions``
    positional arguments, and the file has none of the words in ``not_beside``.
    """
    once: set[tuple[str, Any]] = set()
    for call in sorted(context.index.calls, key=context.index.start):
        name = context.index.qualified_name(call.func)
        method = f".{call.func.attr}" if isinstance(call.func, ast.Attribute) else ""
        for rule in rules:
            if (name and rule_fits(rule, name)) or (not name and method and method in rule.match):
                place = _place(context, rule, call)
                if place not in once and _wanted(context, call, rule.options):
                    once.add(place)
                    edits = _renaming(context, rule, call)
                    form = "function" if name.startswith(".") or not name else "torch"
                    yield found(context, rule, call, api=name or method, edits=edits, form=form)


def _place(context: FileContext, rule: Rule, call: ast.Call) -> tuple[str, Any]:
    """What has one finding of a rule: the call, its function or the file."""
    once = rule.options.get("once")
    if once == "function":
        return rule.code, context.index.function_of(call) or call
    return rule.code, None if once == "file" else call


def _wanted(context: FileContext, call: ast.Call, options: Any) -> bool:
    given = {keyword.arg for keyword in call.keywords if not _is_off(keyword.value)}
    if any(keyword.arg in options.get("on", ()) and _is_off(keyword.value) for keyword in call.keywords):
        return False
    unless = options.get("unless", {})
    if any(k.arg in unless and getattr(k.value, "value", None) == unless[k.arg] for k in call.keywords):
        return False
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
    if "of" in options and not (call.args and called_name(call.args[0]) == options["of"]):
        return []
    return [
        Edit(
            context.index.start(call.func),
            context.index.end(call.func),
            rule.replace.replace("{name}", called_name(call)),
        )
    ]
