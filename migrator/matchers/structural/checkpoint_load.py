"""Checkpoints that are loaded without ``map_location``: those saved on a CUDA device raise on an NPU."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from migrator.matchers.context import FileContext, Match, found
from migrator.matchers.dotted import calls_of
from migrator.matchers.kinds.argument import added_argument
from migrator.matchers.options import Options
from migrator.matchers.packs import Rule
from migrator.names.tree import argument_of, called_name, hands_on, last_name


@dataclass(frozen=True)
class LoadOptions(Options):
    """``hints``: a regular expression for names and paths that speak of a checkpoint."""

    hints: str = ""


def find(context: FileContext, rule: Rule[LoadOptions]) -> Iterator[Match]:
    """Loads whose path, whose target, or what takes them, speaks of a checkpoint."""
    hints = re.compile(rule.options.hints, re.IGNORECASE)
    for call, api in calls_of(context.index, rule):
        if hands_on(call) or argument_of(call, "map_location", 1) is not None:
            continue
        if any(hints.search(words) for words in _words(context, call)):
            edits = added_argument(context.index, call, "map_location", '"cpu"')
            yield found(context, rule, call, api=api, edits=edits, needs_npu=False)


def _words(context: FileContext, call: ast.Call) -> Iterator[str]:
    """The path, the targets of the assignment, the calls and the function around."""
    index = context.index
    yield from map(index.segment, call.args)
    for parent in index.above(call):
        if isinstance(parent, ast.Call):
            yield called_name(parent)
        elif isinstance(parent, ast.Assign):
            yield from map(last_name, parent.targets)
        if isinstance(parent, ast.stmt):
            break
    function = index.function_of(call)
    yield function.name if function else ""
