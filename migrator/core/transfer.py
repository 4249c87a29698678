"""Mode transfer: the source stays, and entry files import torch_npu's run-time patching."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from migrator.language import _
from migrator.matchers.context import FileContext, Match, insertion
from migrator.matchers.entry import is_entry
from migrator.matchers.npu_import import imports_package, insert_import, names_package, torch_npu_imports
from migrator.matchers.packs import Rule
from migrator.names.index import ModuleIndex
from migrator.names.tree import called_name

_TRANSFER = "from torch_npu.contrib import transfer_to_npu"


def find(context: FileContext, rule: Rule) -> list[Match]:
    """The two imports for a file that is started and imports torch; nothing for other files."""
    index = context.index
    if not is_entry(context) or not imports_package(index, "torch"):
        return []
    if any("transfer_to_npu" in index.segment(node) for node in index.imports):
        return []
    inserted = []
    for node, edit in torch_npu_imports(index, list(index.imports), context.version.replaces_names):
        both = "import torch_npu" + _break(edit.text) + _TRANSFER
        text = edit.text.replace("import torch_npu", both)
        inserted.append(insertion(context, rule, node, edit._replace(text=text)))
    if not inserted:  # torch_npu is imported already
        there = next(node for node in index.imports if names_package(node, "torch_npu"))
        inserted.append(insertion(context, rule, there, insert_import(index, there, _TRANSFER)))
    return inserted


def left(index: ModuleIndex, matches: list[Match], rules: Mapping[str, Rule]) -> list[Match]:
    """What is still to do when torch is patched: the matches without fixes, and fixes that it leaves out."""
    return [_reported(item) for item in matches if not _is_done(index, item, rules[item.finding.code])]


def _is_done(index: ModuleIndex, item: Match, rule: Rule) -> bool:
    """Whether the patching does what a fix does: of texts, not where they are compared with a device."""
    return item.finding.fix is not None and rule.transfer and not _is_compared(index, item.node)


def _is_compared(index: ModuleIndex, node: ast.AST) -> bool:
    holder = index.parent(node)
    while isinstance(holder, (ast.Tuple, ast.List, ast.Set)):
        holder = index.parent(holder)
    is_text = isinstance(node, (ast.Constant, ast.JoinedStr))
    return is_text and (isinstance(holder, ast.Compare) or called_name(holder) in ("startswith", "endswith"))


def _reported(item: Match) -> Match:
    if item.finding.fix is None:
        return item
    finding = item.finding
    advice = finding.advice or _("Change it by hand, or migrate with --mode rewrite.")
    message = _("{message}; transfer_to_npu does not do that", message=finding.message)
    return item._replace(finding=finding._replace(fix=None, message=message, advice=advice))


def _break(inserted: str) -> str:
    """What separates a second statement from the first in an inserted text."""
    match = re.match(r"(\r\n|\r|\n)?([ \t\f]*)import torch_npu(\r\n|\r|\n)?", inserted)
    if match is None or inserted.endswith("; "):
        return "; "
    return (match.group(1) or match.group(3) or "\n") + match.group(2)
