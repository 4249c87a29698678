"""Configurations in texts: ``yaml.safe_load("device: cuda")``, by the readers of such files."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from migrator.findings.finding import Edit
from migrator.matchers.context import FileContext, Match, found
from migrator.matchers.packs import Options, Rule
from migrator.names.strings import inside
from migrator.names.tree import string_value

if TYPE_CHECKING:
    from migrator.other_files.index import Setting


@dataclass(frozen=True)
class ConfigOptions(Options):
    """``reads``: the functions that read a text, and the type of files that it is like.

    ``values``: what a value becomes; a ``*`` at the end is a number.
    """

    reads: dict[str, str] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)


def find(context: FileContext, rule: Rule[ConfigOptions]) -> Iterator[Match]:
    """The values of such texts whose keys name a device or a backend."""
    index = context.index
    for call in index.calls:
        kind = rule.options.reads.get(index.qualified_name(call.func))
        node = _text(context, call.args[0]) if call.args else None
        text, place = string_value(node), inside(index, node) if isinstance(node, ast.expr) else None
        if kind is None or text is None or place is None or node is None:
            continue
        for setting, new in _changes(rule, context.name, kind, text):
            span = setting.value_span
            if span is not None:
                edit = Edit(place[0] + span[0], place[0] + span[1], new)
                yield found(context, rule, node, api=f"{setting.name}: {setting.value}", edits=[edit])


def _text(context: FileContext, node: ast.expr) -> ast.expr:
    """The text that a call is given, also by the only name that it has."""
    values = context.index.assigned(node) if isinstance(node, ast.Name) else []
    return values[0] if len(values) == 1 else node


def _changes(rule: Rule[ConfigOptions], name: str, kind: str, text: str) -> Iterator[tuple[Setting, str]]:
    """The settings of a text that name a device or a backend, each with its new value."""
    # Most files that load something load no such text, and have no use for its readers.
    from migrator.matchers.kinds.value import name_fits, new_value
    from migrator.other_files.index import NotParsedError, read

    try:
        content = read(name, kind, text).content
    except NotParsedError:
        return
    for setting in content.settings:
        new = new_value(rule.options.values, setting) if setting.kind == "key" else None
        if new is not None and name_fits(rule.match, setting.name):
            yield setting, new
