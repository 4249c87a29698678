"""Kind ``call``: calls of an API that has a better equivalent, or that deserve advice."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from migrator.findings.finding import Edit
from migrator.matchers.context import FileContext, Match, found, instead_of
from migrator.matchers.options import Scalar
from migrator.matchers.packs import Options, Rule
from migrator.names.guards import IMPORT_ERRORS, is_caught
from migrator.names.tree import arguments_of, called_name, is_off, root


@dataclass(frozen=True)
class CallOptions(Options):
    """Which calls a rule is about, and which of them are renamed.

    ``has`` and ``has_not`` are keywords of which a call must have one, or must have none, ``takes``
    qualified names of which one must be an argument, ``on`` keywords that must not be switched off,
    ``unless`` keywords with the value that rules a call out, ``usual`` keywords with a value that counts as
    none; ``once`` is for the first call of a function or file only; ``unless_replaced``: not where a file has
    its own form of the library's name, or the project brings the library along. With ``replace`` a call is
    renamed, but only where the first argument is a call of a method ``of`` that name, all keywords are in
    ``keeps``, there are at most ``positions`` positional arguments, and the file has none of the words in
    ``not_beside``.
    """

    has: tuple[str, ...] = ()
    has_not: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    on: tuple[str, ...] = ()
    unless: dict[str, Scalar] = field(default_factory=dict)
    usual: dict[str, Scalar] = field(default_factory=dict)
    once: Literal["", "function", "file"] = ""
    unless_replaced: bool = False
    of: str = ""
    keeps: tuple[str, ...] = ()
    positions: int = 1
    not_beside: tuple[str, ...] = ()


def find(context: FileContext, rules: list[Rule[CallOptions]]) -> Iterator[Match]:
    """Calls of the rules' APIs by their qualified names, methods of tensors as ``.name``."""
    once: set[tuple[str, ast.AST | None]] = set()
    for call in sorted(context.index.calls, key=context.index.start):
        name = context.index.qualified_name(call.func)
        method = f".{call.func.attr}" if isinstance(call.func, ast.Attribute) else ""
        for rule in rules:
            if (name and rule.fits(name)) or (not name and method and method in rule.match):
                place = _place(context, rule, call)
                if place not in once and _wanted(context, call, rule.options):
                    if rule.options.unless_replaced and is_replaced(context, rule, call, name):
                        continue
                    once.add(place)
                    edits = _renaming(context, rule, call)
                    form = "function" if name.startswith(".") or not name else "torch"
                    # What ** brings may be the keyword that is missed.
                    doubtful = rule.options.has_not and any(each.arg is None for each in call.keywords)
                    severity = "info" if doubtful else ""
                    yield found(
                        *(context, rule, call), api=name or method, edits=edits, form=form, severity=severity
                    )
    yield from _decorators(context, rules)


def _decorators(context: FileContext, rules: list[Rule[CallOptions]]) -> Iterator[Match]:
    """``@torch.compile``, which is called with nothing but the function."""
    index = context.index
    for function in index.functions:
        for decorator in function.decorator_list:
            name = index.qualified_name(decorator) if isinstance(decorator, (ast.Attribute, ast.Name)) else ""
            for rule in rules if name else ():
                options = rule.options
                if rule.fits(name) and not (options.has or options.takes or options.once or rule.replace):
                    yield found(context, rule, decorator, api=name, form="torch")


def _place(context: FileContext, rule: Rule[CallOptions], call: ast.Call) -> tuple[str, ast.AST | None]:
    """What has one finding of a rule: the call, its function or the file."""
    once = rule.options.once
    if once == "function":
        return rule.code, context.index.function_of(call) or call
    return rule.code, None if once == "file" else call


def _wanted(context: FileContext, call: ast.Call, options: CallOptions) -> bool:
    usual = options.usual
    given = {
        keyword.arg
        for keyword in call.keywords
        if not is_off(keyword.value)
        and not (keyword.arg in usual and getattr(keyword.value, "value", None) == usual[keyword.arg])
    }
    if any(keyword.arg in options.on and is_off(keyword.value) for keyword in call.keywords):
        return False
    unless = options.unless
    if any(k.arg in unless and getattr(k.value, "value", None) == unless[k.arg] for k in call.keywords):
        return False
    if options.has and given.isdisjoint(options.has):
        return False
    if options.takes:
        values = arguments_of(call)
        names = {context.index.qualified_name(v) for v in values if isinstance(v, (ast.Name, ast.Attribute))}
        if names.isdisjoint(options.takes):
            return False
    return given.isdisjoint(options.has_not)


def is_replaced(context: FileContext, rule: Rule[Any], call: ast.Call, name: str) -> bool:
    """Whether a name stands for something else where the library is missing: ``except`` binds it again."""
    if context.project.owns(name, context.name) or is_caught(context.index, call, IMPORT_ERRORS):
        return True
    used = root(call.func)
    others = context.index.bindings(used) if isinstance(used, ast.Name) else []
    return len(others) > 1 and any(
        other.kind in ("class", "def") or (other.kind == "import" and not rule.fits(other.name))
        for other in others
    )


def _renaming(context: FileContext, rule: Rule[CallOptions], call: ast.Call) -> list[Edit]:
    if not rule.replace or any(isinstance(argument, ast.Starred) for argument in call.args):
        return []
    options = rule.options
    keywords = {keyword.arg for keyword in call.keywords}
    if not keywords <= set(options.keeps) or len(call.args) > options.positions:
        return []
    if any(word in context.index.text for word in options.not_beside):
        return []
    if options.of and not (call.args and called_name(call.args[0]) == options.of):
        return []
    return [instead_of(context.index, call.func, rule.replace.replace("{name}", called_name(call)))]
