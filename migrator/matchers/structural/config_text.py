"""Configurations in texts: ``yaml.safe_load("device: cuda")``, by the readers of such files."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import field

from migrator.findings.finding import Edit
from migrator.matchers.context import FileContext, Match, found
from migrator.matchers.packs import Options, Rule
from migrator.names.strings import inside
from migrator.names.tree import string_value


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
        if kind is None or not call.args:
            continue
        node = call.args[0]
        values = index.assigned(node) if isinstance(node, ast.Name) else []
        node = values[0] if len(values) == 1 else node  # by the only name that it has
        text, place = string_value(node), inside(index, node)
        if text is None or place is None:
            continue
        # Most files that load something load no such text, and have no use for its readers.
        from migrator.matchers.kinds.setting import name_fits, new_value
        from migrator.other_files.index import readable

        read = readable(context.name, kind, text)
        for setting in read.content.settings if read is not None else ():
            new, span = new_value(rule.options.values, setting), setting.value_span
            fits = setting.kind == "key" and name_fits(rule.match, setting.name)
            if fits and new is not None and span is not None:
                edit = Edit(place[0] + span[0], place[0] + span[1], new)
                yield found(context, rule, node, api=f"{setting.name}: {setting.value}", edits=[edit])
