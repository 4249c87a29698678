"""Whether a file shows that its program can train with several ranks: by what it imports and calls."""

from __future__ import annotations

import ast
import re
from functools import cache
from typing import Any

from migrator.names.tree import parse
from migrator.project.distributed_names import entries, listed

_LIBRARIES, _CALLS = "distributed_libraries", "distributed_calls"


def is_distributed(text: str) -> bool:
    """Whether a file imports a library that starts ranks, or calls what sets them up.

    Comments, strings and names of its own say nothing; nor does a file that cannot be parsed.
    """
    if not may_be_distributed(text):
        return False
    try:
        tree = parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    bound: dict[str, str] = {}
    for node in ast.walk(tree):
        for name, meaning in _imported(node):
            if listed(_LIBRARIES, meaning):
                return True
            bound[name] = meaning
    return any(
        isinstance(node, ast.Call) and listed(_CALLS, _full_name(node.func, bound)) for node in ast.walk(tree)
    )


def may_be_distributed(text: str) -> bool:
    """A quick look: whether a file holds a word of which one that is distributed has one."""
    return bool(_words().search(text))


@cache
def _words() -> re.Pattern[str]:
    """What the names begin with, and of torch's own what they end with: a file without it is not parsed."""
    names = {
        entry.rpartition(".")[2] if entry.startswith("torch.") else entry.partition(".")[0]
        for table in (_LIBRARIES, _CALLS)
        for entry in entries(table)
    }
    return re.compile(rf"\b(?:{'|'.join(sorted(names))})\b")


def _imported(node: Any) -> list[tuple[str, str]]:
    """The names that an import binds, each with its full name."""
    if isinstance(node, ast.Import):
        return [
            (one.asname, one.name) if one.asname else (one.name.partition(".")[0], one.name)
            for one in node.names
        ]
    if isinstance(node, ast.ImportFrom) and not node.level:
        return [(one.asname or one.name, f"{node.module}.{one.name}") for one in node.names]
    return []


def _full_name(node: Any, bound: dict[str, str]) -> str:
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in bound:
        return ""
    first = bound[node.id]
    if first.startswith(f"{node.id}."):  # import a.b binds a
        first = node.id
    return ".".join([first, *reversed(parts)])
