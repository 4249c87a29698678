"""Kind ``import``: a library that is made for CUDA. Each import of it is reported."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from migrator.analysis.hints import called_name
from migrator.engine.context import FileContext, Found, found
from migrator.engine.matching import rule_fits
from migrator.engine.packs import Rule


def find(context: FileContext, rules: list[Rule]) -> Iterator[Found]:
    """Imports of the rules' modules, as statements and as texts given to importers."""
    for node in context.index.imports:
        for rule in rules:
            names = [name for name in _imported(node) if rule_fits(rule, name)]
            if names:
                yield found(context, rule, node, api=", ".join(names))
    for call in context.index.calls:
        if not (call.args and isinstance(call.args[0], ast.Constant) and isinstance(call.args[0].value, str)):
            continue
        name = called_name(call)
        if name in ("import_module", "__import__", "find_spec", "importorskip"):
            # Who asks first whether it is there, has an answer for the case that it is not.
            severity = "info" if name in ("find_spec", "importorskip") else ""
            for rule in rules:
                if rule_fits(rule, call.args[0].value):
                    yield found(context, rule, call, api=call.args[0].value, severity=severity)


def _imported(node: Any) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if node.level or not node.module:
        return []
    return [f"{node.module}.{alias.name}" if alias.name != "*" else node.module for alias in node.names]
