"""``torch.set_default_tensor_type('torch.cuda.FloatTensor')`` has no NPU form."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from migrator.findings.finding import Edit
from migrator.matchers.calls import calls_of
from migrator.matchers.context import FileContext, Match, found
from migrator.matchers.npu_import import statement_separator
from migrator.matchers.options import Options
from migrator.matchers.packs import Rule


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
        name = argument.value if isinstance(argument, ast.Constant) else index.qualified_name(argument)
        if not isinstance(name, str) or not name.startswith("torch.cuda."):
            if "cuda" in index.segment(argument):
                yield found(context, rule, call, api=api, severity="error", claims=True)
            continue
        dtype = rule.options.dtypes.get(name.rpartition(".")[2])
        statement = index.parent(call)
        if dtype is None or not isinstance(statement, ast.Expr) or not context.version.has_set_default_device:
            yield found(context, rule, call, api=api, severity="error", claims=True)
            continue
        base = index.segment(call.func)[: -len(api.rpartition(".")[2])]
        if not base:  # imported by its bare name
            yield found(context, rule, call, api=api, severity="error", claims=True)
            continue
        separator = statement_separator(index, statement)
        text = f'{base}set_default_device("npu"){separator}{base}set_default_dtype({base}{dtype})'
        edits = [Edit(index.start(call), index.end(call), text)]
        yield found(context, rule, call, api=api, edits=edits, claims=True)
