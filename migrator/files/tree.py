"""Walking a tree of folders: how it is done, for all who say what they look for in one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Callable, TypeVar

Place = TypeVar("Place")
Seen = TypeVar("Seen")


def walk(top: Sequence[Place], look: Callable[[Place], tuple[Seen, Sequence[Place]]]) -> Iterator[Seen]:
    """What is seen at each place: ``look`` gives that, and the places inside, which come next, in its order.

    Holds the places on the way down, never those of the tree; and a tree may be deeper than Python's
    recursion limit.
    """
    waiting = [*reversed(top)]
    while waiting:
        seen, inside = look(waiting.pop())
        yield seen
        waiting.extend(reversed(inside))


def listing(folder: str) -> list[os.DirEntry[str]]:
    """What a folder holds, by name. Raises OSError."""
    with os.scandir(folder) as items:
        return sorted(items, key=lambda item: item.name)
