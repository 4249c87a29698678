"""Strings that name a device or a backend, as expressions that give the one of the machine."""

from __future__ import annotations

import ast
import re
from typing import Optional

from migrator.core.keep_cuda.module import BACKEND, BACKEND_QUESTION, PLACE, QUESTION
from migrator.core.keep_cuda.names import shared_name
from migrator.findings.finding import Edit
from migrator.matchers.context import FileContext, Match, instead_of
from migrator.matchers.packs import Rule
from migrator.names.device_strings import written
from migrator.names.index import ModuleIndex
from migrator.names.tree import called_name

_PLAIN = re.compile(r"([rRuU]?)('''|\"\"\"|'|\")(.*)\2", re.DOTALL)
# Calls whose argument is looked for in the name of a device.
_TESTS = frozenset(
    "startswith endswith replace split rsplit removeprefix partition strip lstrip count index find"
    " match fullmatch search sub compile".split()
)


def shared_string(context: FileContext, rule: Rule, item: Match) -> Optional[list[Edit]]:
    """The edits for a string; None where it cannot be such an expression."""
    index, node = context.index, item.node
    if not isinstance(node, (ast.Constant, ast.JoinedStr)):
        return None
    shape, text = rule.options.shape, written(index, node)
    if shape == "api-name":
        name, _ = shared_name(text, context)
        return [instead_of(index, node, repr(name))] if name else None
    if shape not in ("device", "backend", "attribute", "tensor-type") or "NCCL" in text or "Nccl" in text:
        return None
    asks = shape in ("attribute", "tensor-type") or (":" in text and "nccl" in text) or _asks(index, node)
    members = {
        "cuda": QUESTION if asks else PLACE,
        "nccl": BACKEND_QUESTION if asks else BACKEND,
    }
    if isinstance(node, ast.JoinedStr):
        return _in_fstring(index, item, members)
    if text in members:
        return [instead_of(index, node, members[text])]
    return _as_fstring(index, node, item, members)


def _in_fstring(index: ModuleIndex, item: Match, members: dict[str, str]) -> Optional[list[Edit]]:
    edits = []
    for edit in item.edits:
        member = members.get(index.data[edit.start : edit.end].decode("utf-8"))
        if member is None:
            return None
        edits.append(edit._replace(text="{" + member + "}"))
    return edits


def _as_fstring(
    index: ModuleIndex, node: ast.Constant, item: Match, members: dict[str, str]
) -> Optional[list[Edit]]:
    plain = _PLAIN.fullmatch(index.segment(node))
    if plain is None or plain[2] in plain[3] or _is_pattern(index.parent(node)):
        return None
    start = index.start(node) + len((plain[1] + plain[2]).encode("utf-8"))
    body, position = "", start
    for edit in item.edits:
        member = members.get(index.data[edit.start : edit.end].decode("utf-8"))
        if member is None or edit.start < position:
            return None
        body += _doubled(index.data[position : edit.start]) + "{" + member + "}"
        position = edit.end
    body += _doubled(index.data[position : start + len(plain[3].encode("utf-8"))])
    prefix = "f" + plain[1].lower().replace("u", "")
    return [instead_of(index, node, f"{prefix}{plain[2]}{body}{plain[2]}")]


def _doubled(data: bytes) -> str:
    return data.decode("utf-8").replace("{", "{{").replace("}", "}}")


def _is_pattern(node: ast.AST | None) -> bool:
    return type(node).__name__ == "MatchValue"  # Python 3.10 and newer have it


def _asks(index: ModuleIndex, node: ast.AST) -> bool:
    """Whether a string is compared with the name of a device, and puts nothing there."""
    child, parent = node, index.parent(node)
    while isinstance(parent, (ast.Tuple, ast.List, ast.Set)):
        child, parent = parent, index.parent(parent)
    if isinstance(parent, ast.Dict):
        return child in parent.keys
    if isinstance(parent, ast.Call):
        return child in parent.args and called_name(parent) in _TESTS
    if isinstance(parent, ast.keyword):
        return parent.arg == "choices"
    return isinstance(parent, (ast.Compare, ast.Subscript)) or _is_pattern(parent)
