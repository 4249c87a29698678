"""Where goes what Python looks up by a name: a variable of the environment, a key of a configuration."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Optional

from migrator.names.device_context import device_context
from migrator.names.device_vocabulary import DeviceVocabulary
from migrator.names.index import ModuleIndex
from migrator.names.tree import called_name, walk

_GETTERS = ("get", "getenv", "pop", "setdefault")
_ENVIRONMENT = re.compile(r"\b(?:environ|getenv)\b")


def verdicts_on(text: str, name: str, in_environment: bool, vocabulary: DeviceVocabulary) -> Iterator[str]:
    """The verdict on each place of a file at which something is looked up by ``name``.

    A variable of the environment, or a key or a member of anything else.
    """
    quoted = re.search(rf"""["']{re.escape(name)}["']""", text)
    if not quoted and (in_environment or f".{name}" not in text):
        return
    try:
        index = ModuleIndex(text, {name})
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for string in index.strings:
        if isinstance(string, ast.Constant) and string.value == name:
            node = _look_up(index, string)
            if node is not None and bool(_ENVIRONMENT.search(index.segment(node))) == in_environment:
                yield device_context(index, vocabulary, node).verdict
    for ref in index.refs if not in_environment else ():
        for each in walk(ref):
            if isinstance(each, ast.Attribute) and each.attr == name and isinstance(each.ctx, ast.Load):
                yield device_context(index, vocabulary, each).verdict


def _look_up(index: ModuleIndex, key: ast.Constant) -> Optional[ast.expr]:
    """What is looked up by a string: ``config["key"]``, ``config.get("key")``."""
    around = index.parent(key)
    if isinstance(around, ast.Subscript) and around.slice is key and isinstance(around.ctx, ast.Load):
        return around
    if isinstance(around, ast.Call) and called_name(around) in _GETTERS and around.args[:1] == [key]:
        return around
    return None
