"""Kind ``import``: a library that is made for CUDA. Each import of it is reported, or the first of a file.

One that is tried, and may fail, is less grave: the program goes on without the library.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import Literal

from migrator.matchers.context import FileContext, Match, found
from migrator.matchers.dotted import rule_of
from migrator.matchers.options import Options
from migrator.matchers.packs import Rule
from migrator.names.index import ModuleIndex
from migrator.names.tree import FUNCTIONS, called_name, imported, string_value

_LESS = {"error": "warning", "warning": "info", "info": "info"}
_CAUGHT = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})


@dataclass(frozen=True)
class ImportOptions(Options):
    """``once`` is for the first import of a file only."""

    once: Literal["", "file"] = ""


def find(context: FileContext, rules: list[Rule[ImportOptions]]) -> Iterator[Match]:
    """Imports of the rules' modules, as statements and as texts given to importers.

    The project's own packages are no libraries.
    """
    once = {rule.code for rule in rules if rule.options.once}
    said: set[str] = set()
    for item in _every(context, rules):
        code = item.finding.code
        if code not in said:
            yield item
        if code in once:
            said.add(code)


def _every(context: FileContext, rules: list[Rule[ImportOptions]]) -> Iterator[Match]:
    for node in context.index.imports:
        names = [(rule_of(rules, name), name) for name in imported(node) if not _is_own(context, name)]
        for rule in rules:
            belonging = [name for owner, name in names if owner is rule]
            if belonging:
                yield _found(context, rule, node, belonging)
    for call in context.index.calls:
        library, name = string_value(call.args[0]) if call.args else None, called_name(call)
        if library is not None and name in ("import_module", "__import__", "find_spec", "importorskip"):
            # Who asks first whether it is there, has an answer for the case that it is not.
            severity = "info" if name in ("find_spec", "importorskip") else ""
            owner = rule_of(rules, library)
            if owner is not None and not _is_own(context, library):
                yield _found(context, owner, call, [library], severity)


def _found(context: FileContext, rule: Rule, node: ast.AST, names: list[str], severity: str = "") -> Match:
    library = names[0].partition(".")[0]
    message = (rule.message or rule.summary).replace("{library}", library)
    if not severity and _may_fail(context.index, node):
        message += "; the program goes on where the import fails"
        severity = _LESS[rule.severity]
    return found(context, rule, node, api=", ".join(names), message=message, severity=severity)


def _may_fail(index: ModuleIndex, node: ast.AST) -> bool:
    """Whether an import stands in a ``try`` that catches its error, and does not raise another one."""
    child = node
    for parent in takewhile(lambda up: not isinstance(up, FUNCTIONS), index.above(node)):
        if isinstance(parent, ast.Try) and child in parent.body:
            for handler in parent.handlers:
                if handler.type is None or not _CAUGHT.isdisjoint(_names(handler.type)):
                    return not any(isinstance(each, ast.Raise) for each in ast.walk(handler))
        child = parent
    return False


def _names(types: ast.expr) -> list[str]:
    return [item.id for item in ast.walk(types) if isinstance(item, ast.Name)]


def _is_own(context: FileContext, name: str) -> bool:
    return context.project.owns(name.partition(".")[0], context.name)
