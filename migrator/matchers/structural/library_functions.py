"""Uses of a library's functions that the analysis of the library has found not to work, or not always."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrator.language import _
from migrator.matchers.context import FileContext, Match, found
from migrator.matchers.packs import Rule
from migrator.project.library_functions import LibraryFunction


def find(context: FileContext, rule: Rule) -> Iterator[Match]:
    """Names that stand for such functions, classes and methods."""
    libraries = context.project.libraries
    for ref in context.index.refs:
        if not isinstance(getattr(ref, "ctx", None), ast.Load):
            continue
        name = context.index.qualified_name(ref)
        while name and name not in libraries:
            name = name.rpartition(".")[0]
        if name:
            yield _told(context, rule, ref, libraries[name])


def _told(context: FileContext, rule: Rule, ref: ast.expr, known: LibraryFunction) -> Match:
    condition = f", if: {known.condition}" if known.condition else ""
    about = {"name": known.name, "reached": known.reached, "condition": condition}
    message = _("{name} may not work on NPUs: it reaches {reached}{condition}", **about)
    status, severity = "unknown", "warning"
    if known.verdict == "unsupported":
        message = _("{name} cannot work on NPUs: it reaches {reached}", **about)
        status, severity = "unsupported", "error"
    message, advice = f"{message}; by {known.chain}", known.tips
    return found(
        context, rule, ref, api=known.name, message=message, advice=advice, status=status, severity=severity
    )
