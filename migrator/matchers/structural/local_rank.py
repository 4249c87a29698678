"""Options ``--local_rank``, which the older launcher gave: torchrun says it by a variable."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrator.findings.finding import Edit
from migrator.matchers.context import FileContext, Match, found, instead_of
from migrator.matchers.npu_import import statement_separator
from migrator.matchers.packs import Rule
from migrator.names.index import ModuleIndex
from migrator.names.tree import argument_of, called_name, string_value

_OLD, _NEW = "--local_rank", "--local-rank"


def find_defaults(context: FileContext, rule: Rule) -> Iterator[Match]:
    """Take a number as the default from the variable, where the program does not ask for it by itself."""
    index = context.index
    for call in index.calls:
        if called_name(call) == "add_argument" and any(
            string_value(one) in (_OLD, _NEW) for one in call.args
        ):
            default = argument_of(call, "default")
            imports = _import_of_os(index, call)
            if default is not None and imports is not None and _is_number(default):
                code = f'int(os.environ.get("LOCAL_RANK", {index.segment(default)}))'
                edits = [*imports, instead_of(index, default, code)]
                yield found(context, rule, call, api=_OLD, edits=edits)


def _is_number(node: ast.expr) -> bool:
    value = node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else node
    return isinstance(value, ast.Constant) and type(value.value) is int


def _import_of_os(index: ModuleIndex, call: ast.Call) -> list[Edit] | None:
    """What has to be written for ``os`` to be the module; None where it is something else or has no place."""
    bindings = index.scope_of(call).look_up("os")
    if bindings:
        return [] if all(one.kind == "import" and one.name == "os" for one in bindings) else None
    # Beside its use: at the top the change would have other imports between its two ends.
    statement = index.statement_of(call)
    if not isinstance(statement, (ast.Expr, ast.Assign, ast.Return)):
        return None
    at = index.start(statement)
    return [Edit(at, at, f"import os{statement_separator(index, statement)}")]


def find_spellings(context: FileContext, rule: Rule) -> Iterator[Match]:
    """Parsers that know the old spelling only get the new one behind it; the value keeps its name."""
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
