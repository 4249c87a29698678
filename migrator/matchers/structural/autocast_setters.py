"""``torch.set_autocast_enabled(True)`` and ``set_autocast_gpu_dtype(...)`` set CUDA's autocast."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from migrator.findings.finding import Edit
from migrator.matchers.context import FileContext, Match, found
from migrator.matchers.packs import Options, Rule


@dataclass(frozen=True)
class SetterOptions(Options):
    """``renames``: the last names of functions that take a device type, by those that take none."""

    renames: dict[str, str] = field(default_factory=dict)


def find(context: FileContext, rule: Rule[SetterOptions]) -> Iterator[Match]:
    """Calls with one argument get the device type in front of it."""
    index = context.index
    for call, name in context.calls_of(rule):
        last = name.rpartition(".")[2]
        if len(call.args) != 1 or call.keywords:
            continue
        end = index.end(call.func)
        if not index.segment(call.func).endswith(last):  # under another name: only a person can say
            yield found(context, rule, call, api=name)
            continue
        start, opening = index.start(call.args[0]), index.data.index(b"(", end) + 1
        if index.data[opening:start].strip():  # the argument has parentheses of its own
            start = opening
        edits = [
            Edit(end - len(last), end, rule.options.renames.get(last, last)),
            Edit(start, start, '"npu", '),
        ]
        yield found(context, rule, call, api=name, edits=[edit for edit in edits if edit.text != last])
