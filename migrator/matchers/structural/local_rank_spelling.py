"""Parsers that know the option of the older launcher, ``--local_rank``, by its old spelling only."""

from __future__ import annotations

from collections.abc import Iterator

from migrator.findings.finding import Edit
from migrator.matchers.context import FileContext, Match, found
from migrator.matchers.packs import Rule
from migrator.names.tree import called_name, string_value

_OLD, _NEW = "--local_rank", "--local-rank"


def find(context: FileContext, rule: Rule) -> Iterator[Match]:
    """Add the new spelling behind the old one, whose name the value keeps; not where the file has it."""
    index = context.index
    options = [call for call in index.calls if called_name(call) == "add_argument"]
    if any(string_value(one) == _NEW for call in options for one in call.args):
        return
    for call in options:
        old = next((one for one in call.args if string_value(one) == _OLD), None)
        if old is not None:
            written = index.segment(old).replace("_", "-")
            edits = [Edit(index.end(old), index.end(old), f", {written}")]
            yield found(context, rule, call, api=_OLD, edits=edits)
