"""Kind ``import``: a library that is made for CUDA. Each import of it is reported, or the first of a file."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from migrator.analysis.hints import called_name
from migrator.engine.context import FileContext, Found, found
from migrator.engine.matching import rule_fits
from migrator.engine.packs import Rule


def find(context: FileContext, rules: list[Rule]) -> Iterator[Found]:
    """Imports of the rules' modules, as statements and as texts given to importers.

    Option ``once: file`` reports only a file's first import. What a package imports of itself
    is no library.
    """
    said: set[str] = set()
    for item in _every(context, rules):
        code = item.finding.code
        if code not in said:
            yield item
        if any(rule.code == code and rule.options.get("once") == "file" for rule in rules):
            said.add(code)


def _every(context: FileContext, rules: list[Rule]) -> Iterator[Found]:
    own = _own_package(context.name)
    for node in context.index.imports:
        for rule in rules:
            names = [
                name for name in _imported(node) if rule_fits(rule, name) and name.partition(".")[0] != own
            ]
            if names:
                yield found(context, rule, node, api=", ".join(names))
    for call in context.index.calls:
        if not (call.args and isinstance(call.args[0], ast.Constant) and isinstance(call.args[0].value, str)):
            continue
        if called_name(call) in ("import_module", "__import__", "find_spec", "importorskip"):
            for rule in rules:
                if rule_fits(rule, call.args[0].value):
                    yield found(context, rule, call, api=call.args[0].value)


def _own_package(file: str) -> str:
    """The package that a file of the project belongs to: xformers for ``src/xformers/ops/a.py``."""
    folders = file.split("/")[:-1]
    if folders[:1] in (["src"], ["python"], ["lib"]):
        folders = folders[1:]
    return folders[0] if folders else ""


def _imported(node: Any) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if node.level or not node.module:
        return []
    return [f"{node.module}.{alias.name}" if alias.name != "*" else node.module for alias in node.names]
