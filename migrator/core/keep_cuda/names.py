"""Names of ``torch.cuda`` that torch.accelerator, or the result's module, has for every device."""

from __future__ import annotations

import ast
import re
from functools import cache
from typing import Optional

from migrator.api_support import npu_names, tables, torch_names
from migrator.core.keep_cuda.module import NAME, import_statement, module_of
from migrator.findings.finding import Edit
from migrator.matchers.context import FileContext, Match, instead_of
from migrator.names.index import ModuleIndex
from migrator.names.tree import called_name, root

_CUDA, _NPU = "torch.cuda", "torch.npu"
_MODULE_AS = re.compile(r"\b(?:from torch_npu import npu|import torch_npu\.npu) as (?=\w)")
_FROM_MODULE = re.compile(r"\bfrom torch_npu\.npu import (?!\*)")


def shared_name(api: str, context: FileContext) -> tuple[str, bool]:
    """The name in ``torch.accelerator`` of a CUDA name, and whether it raises without a device."""
    name, without_device = _table().get(api, ("", ""))
    there = name and torch_names.of_version(context.version.text).present(name)
    return (name, without_device == "raises") if there else ("", False)


def renamed(context: FileContext, item: Match) -> Optional[tuple[list[Edit], bool]]:
    """The edits for a use of a name, and whether they need the module; None where there is no such name."""
    index, api = context.index, item.finding.api
    node = item.node
    if not isinstance(node, (ast.Name, ast.Attribute)) or not isinstance(node.ctx, ast.Load):
        return None
    if not _is_parallel(context, api):
        return None
    name, raises = shared_name(api, context)
    first = root(node)
    is_torch = isinstance(first, ast.Name) and index.qualified_name(first) == "torch"
    if name and is_torch and (not raises or _is_asked_first(index, node)) and _fits(index, node):
        return [instead_of(index, node, index.segment(first) + name[len("torch") :])], False
    return [instead_of(index, node, NAME + api[len(_CUDA) :])], True


def imported(context: FileContext, item: Match) -> Optional[list[Edit]]:
    """The edits for an import of names; None where the module does not have all of them."""
    if not all(_is_parallel(context, api) for api in item.finding.api.split(", ")):
        return None
    edits = []
    for edit in item.edits:
        text = _MODULE_AS.sub(f"{import_statement(context)} as ", edit.text)
        edits.append(edit._replace(text=_FROM_MODULE.sub(f"from {module_of(context)} import ", text)))
    return None if any("torch_npu" in edit.text for edit in edits) else edits


def _is_parallel(context: FileContext, api: str) -> bool:
    """Whether torch.npu has a name of torch.cuda under the same name."""
    known = npu_names.look_up(api, context.version) if f"{api}.".startswith(f"{_CUDA}.") else None
    return known is not None and known.npu == _NPU + api[len(_CUDA) :]


def _fits(index: ModuleIndex, node: ast.expr) -> bool:
    """Whether a use is a call whose arguments torch.accelerator takes, too: its device has no keyword."""
    call = index.call_of(node)
    return call is not None and not call.keywords


def _is_asked_first(index: ModuleIndex, node: ast.AST) -> bool:
    """Whether a node runs only where the program has asked for a device."""
    for child, parent in index.way_up(node):
        if isinstance(parent, (ast.If, ast.IfExp)):
            body = parent.body if isinstance(parent, ast.If) else [parent.body]
            tests = parent.test.values if isinstance(parent.test, ast.BoolOp) else [parent.test]
            is_and = not isinstance(parent.test, ast.BoolOp) or isinstance(parent.test.op, ast.And)
            if child in body and is_and and any(called_name(test) == "is_available" for test in tests):
                return True
    return False


@cache
def _table() -> dict[str, tuple[str, str]]:
    return {cuda: (shared, without) for cuda, shared, without, _ in tables.rows("shared_names")}
