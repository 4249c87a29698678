"""``torch.set_default_tensor_type('torch.cuda.FloatTensor')`` has no NPU form."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from migrator.matchers.calls import calls_of
from migrator.matchers.context import FileContext, Match, found, instead_of
from migrator.matchers.npu_import import statement_separator
from migrator.matchers.options import Options
from migrator.matchers.packs import Rule
from migrator.names.tree import string_value


@dataclass(frozen=True)
class TypeOptions(Options):
    """``dtypes``: torch's dtype for each CUDA tensor type."""

    dtypes: dict[str, str] = field(default_factory=dict)


def find(context: FileContext, rule: Rule[TypeOptions]) -> Iterator[Match]:
    """The call becomes ``set_default_device`` and ``set_default_dtype`` where torch has them.

    torch refuses ``torch.npu.FloatTensor`` here ("only floating-point types are
    supported as the default type", seen with torch_npu 2.13).
    """
    index = context.index
    for call, api in calls_of(index, rule):
        arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
        if len(arguments) != 1:
            continue
        argument = arguments[0]
        name = string_value(argument) or index.qualified_name(argument)
        if not name.startswith("torch.cuda."):
            if "cuda" in index.segment(argument):
                yield found(context, rule, call, api=api, severity="error", claims=True)
            continue
        dtype = rule.options.dtypes.get(name.rpartition(".")[2])
        base = index.segment(call.func)[
            : -len(api.rpartition(".")[2])
        ]  # empty where it is imported by its name
        statement = index.parent(call)
        edits = []
        if dtype and base and isinstance(statement, ast.Expr) and context.version.has_set_default_device:
            separator = statement_separator(index, statement)
            text = f'{base}set_default_device("npu"){separator}{base}set_default_dtype({base}{dtype})'
            edits = [instead_of(index, call, text)]
        severity = "" if edits else "error"
        yield found(context, rule, call, api=api, edits=edits, severity=severity, claims=True)
