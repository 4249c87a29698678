"""Lightning's Trainer and its like, which find no NPU unless the result has the module that helps them."""

from __future__ import annotations

from collections.abc import Iterator

from migrator.files.naming import LIGHTNING
from migrator.language import _
from migrator.matchers.context import FileContext, Match, insertion
from migrator.matchers.kinds.call import CallOptions
from migrator.matchers.kinds.call import find as find_calls
from migrator.matchers.npu_import import import_at_top
from migrator.matchers.packs import Rule


def find(context: FileContext, rule: Rule[CallOptions]) -> Iterator[Match]:
    """The calls; in a migration that adds the module its import, where a file uses one of the names."""
    statement = context.project.lightning.get(context.name, "")
    if not statement:
        yield from find_calls(context, [rule])
    elif any(context.uses_of(rule)):
        place = import_at_top(context.index, statement)
        if place is not None:
            message = _("with the module {name} Lightning finds NPUs as it finds GPUs", name=LIGHTNING)
            yield insertion(context, rule, *place, api=LIGHTNING, message=message, safety="unsafe")
