"""``torch.set_autocast_enabled(True)`` and ``set_autocast_gpu_dtype(...)`` set CUDA's autocast."""

from __future__ import annotations

from collections.abc import Iterator

from migrator.findings.finding import Edit
from migrator.matchers.context import FileContext, Match, found
from migrator.matchers.packs import Rule

_NEW = {"set_autocast_gpu_dtype": "set_autocast_dtype", "set_autocast_enabled": "set_autocast_enabled"}


def find(context: FileContext, rule: Rule) -> Iterator[Match]:
    """Calls with one argument get the device type in front of it."""
    index = context.index
    for call in index.calls:
        name = index.qualified_name(call.func)
        last = name.rpartition(".")[2]
        if name not in rule.match or len(call.args) != 1 or call.keywords:
            continue
        end = index.end(call.func)
        if not index.segment(call.func).endswith(last):  # under another name: only a person can say
            yield found(context, rule, call, api=name)
            continue
        start = index.start(call.args[0])
        edits = [Edit(end - len(last), end, _NEW[last]), Edit(start, start, '"npu", ')]
        yield found(context, rule, call, api=name, edits=[edit for edit in edits if edit.text != last])
