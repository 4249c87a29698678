"""Changes of a document: what they are, and what becomes of its data."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Callable, Optional, Union

Path = tuple[Union[str, int], ...]


@dataclass(frozen=True)
class Put:
    """A new entry of a mapping, behind the others or before them."""

    path: Path
    key: str
    value: Any
    first: bool = False


@dataclass(frozen=True)
class Append:
    """A new last item of a list."""

    path: Path
    value: Any


@dataclass(frozen=True)
class Rename:
    """Another key for the entry at ``path``."""

    path: Path
    key: str


@dataclass(frozen=True)
class Set:
    """Another scalar at ``path``. ``rewrite`` makes the same of a text that is written in several lines."""

    path: Path
    value: Any
    rewrite: Optional[Callable[[str], str]] = None


@dataclass(frozen=True)
class Delete:
    """The entry or item at ``path`` goes."""

    path: Path


Change = Union[Put, Append, Rename, Set, Delete]


def at(data: Any, path: Path) -> Any:
    """What lies at ``path``. Raises KeyError, IndexError or TypeError where there is nothing."""
    for step in path:
        data = data[step]
    return data


def changed(data: Any, changes: Sequence[Change]) -> Any:
    """A copy of ``data`` with the changes; all paths are those of ``data`` as it is."""
    result = copy.deepcopy(data)
    made: list[tuple[Any, Change]] = []
    for change in changes:
        short = replace(change, path=() if isinstance(change, (Put, Append)) else change.path[-1:])
        holder = _holder(result, change)
        # What is met twice, through aliases of one anchor, is changed once.
        if not any(holder is other and short == same for other, same in made):
            made.append((holder, short))
    for holder, change in made:
        if isinstance(change, Put):
            entries = [*holder.items()]
            entries.insert(0 if change.first else len(entries), (change.key, change.value))
            holder.clear()
            holder.update(entries)
        elif isinstance(change, Append):
            holder.append(change.value)
        elif isinstance(change, Set):
            holder[change.path[-1]] = change.value
        elif isinstance(change, Delete) and isinstance(holder, dict):
            del holder[change.path[-1]]
    for holder, change in made:
        if isinstance(change, Rename):  # the order of the entries stays
            entries = [(change.key if key == change.path[-1] else key, holder[key]) for key in holder]
            holder.clear()
            holder.update(entries)
    items = [
        (int(change.path[-1]), holder)
        for holder, change in made
        if isinstance(change, Delete) and isinstance(holder, list)
    ]
    for number, holder in sorted(items, key=lambda item: -item[0]):
        del holder[number]
    return result


def _holder(data: Any, change: Change) -> Any:
    return at(data, change.path if isinstance(change, (Put, Append)) else change.path[:-1])
