"""How large what a YAML text stands for is: aliases make few lines stand for billions of values."""

from __future__ import annotations

from typing import Any

_MOST = 1_000_000  # values; the largest manifest of Kubernetes has some ten thousand


def expands_too_far(root: Any) -> bool:
    """Whether a composed document stands for more than a million values; one that holds itself may not."""
    sizes: dict[int, int] = {}
    stack: list[tuple[Any, bool]] = [(root, False)]
    while stack:
        node, inside_is_known = stack.pop()
        inside = _below(node)
        if inside_is_known:
            sizes[id(node)] = min(1 + sum(sizes[id(each)] for each in inside), _MOST + 1)
        elif id(node) not in sizes:
            sizes[id(node)] = 0  # where it is met again below itself
            stack.append((node, True))
            stack += [(each, False) for each in inside]
    return sizes[id(root)] > _MOST


def _below(node: Any) -> list[Any]:
    """The nodes of a list, or the keys and values of a mapping."""
    if not isinstance(node.value, list):
        return []
    return [each for entry in node.value for each in (entry if isinstance(entry, tuple) else (entry,))]
