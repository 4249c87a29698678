"""What modes and options put into the scripts that are started: --mode transfer, --specify-device."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from migrator.files.source import newline_of
from migrator.findings.finding import Edit
from migrator.language import _
from migrator.matchers.context import FileContext, Match, insertion
from migrator.matchers.npu_import import (
    imports_package,
    insert_import,
    names_package,
    statement_separator,
    torch_npu_imports,
)
from migrator.matchers.packs import Rule
from migrator.names.goes_to import behind_lists
from migrator.names.index import ModuleIndex
from migrator.names.tree import called_name, head_lines

_TRANSFER = "from torch_npu.contrib import transfer_to_npu"
_VARIABLE = "DEVICE_ID"
# A rank has its NPU from the launcher. The variable counts before the first use of an NPU: above all imports.
_STATEMENTS = (
    "import os",
    'if "DEVICE_ID" in os.environ and os.environ.keys().isdisjoint({"LOCAL_RANK", "RANK", "RANK_ID"}):',
    '    os.environ.setdefault("ASCEND_RT_VISIBLE_DEVICES", os.environ["DEVICE_ID"])',
)


def transferred(context: FileContext, rule: Rule) -> list[Match]:
    """The import of torch_npu's run-time patching for a file that is started and imports torch."""
    index = context.index
    if not context.is_entry() or not imports_package(index, "torch"):
        return []
    if any("transfer_to_npu" in index.segment(node) for node in index.imports):
        return []
    inserted = []
    for node, edit in torch_npu_imports(index, list(index.imports), context.version.replaces_names):
        both = f"import torch_npu{statement_separator(index, node)}{_TRANSFER}"
        text = edit.text.replace("import torch_npu", both)
        inserted.append(insertion(context, rule, node, edit._replace(text=text)))
    if not inserted:  # torch_npu is imported already
        there = next(node for node in index.imports if names_package(node, "torch_npu"))
        inserted.append(insertion(context, rule, there, insert_import(index, there, _TRANSFER)))
    return inserted


def left(index: ModuleIndex, matches: list[Match], rules: Mapping[str, Rule]) -> list[Match]:
    """What is still to do when torch is patched: the matches without fixes, and fixes that it leaves out."""
    result = []
    for item in matches:
        finding = item.finding
        if finding.fix is not None and rules[finding.code].handler != "own-module":
            # Of texts it does what a fix does, but not where they are compared with a device.
            if rules[finding.code].transfer and not _is_compared(index, item.node):
                continue
            advice = finding.advice or _("Change it by hand, or migrate with --mode rewrite.")
            message = _("{message}; transfer_to_npu does not cover this", message=finding.message)
            finding = finding._replace(fix=None, message=message, advice=advice)
        result.append(item._replace(finding=finding))
    return result


def _is_compared(index: ModuleIndex, node: ast.AST) -> bool:
    holder = behind_lists(index, node).holder
    is_text = isinstance(node, (ast.Constant, ast.JoinedStr))
    return is_text and (isinstance(holder, ast.Compare) or called_name(holder) in ("startswith", "endswith"))


def with_specified_device(context: FileContext, rule: Rule) -> list[Match]:
    """The statements by which DEVICE_ID chooses the NPU, for a file that is started and imports torch.

    None where it has the variable.
    """
    index = context.index
    if not imports_package(index, "torch") or not context.is_entry() or _VARIABLE in index.text:
        return []
    docstring = ast.get_docstring(index.tree, clean=False) is not None
    body = index.tree.body[1 if docstring else 0 :]
    # There is one: the file imports torch.
    first = next(node for node in body if getattr(node, "module", "") != "__future__")
    begin, _ = index.line_span(*[head_lines(first)[0]] * 2)
    edit = Edit(begin, begin, "".join(line + newline_of(index.text) for line in _STATEMENTS))
    return [insertion(context, rule, first, edit, api=_VARIABLE)]
