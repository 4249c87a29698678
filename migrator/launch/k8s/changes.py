"""A document that is changed: what becomes of its data, and what is to be said of that."""

from __future__ import annotations

import copy
from collections.abc import Collection
from typing import Any, Callable, Union

from migrator.language import _
from migrator.launch.k8s.cluster import PlaceError

Path = tuple[Union[str, int], ...]
GONE = object()  # an item that was deleted: those behind it keep their numbers


def at(data: Any, path: Path) -> Any:
    """What lies at ``path``. Raises KeyError, IndexError or TypeError where there is nothing."""
    for step in path:
        data = data[step]
    return data


class Draft:
    """The data of a document, and a copy of it that is changed.

    Paths are those of ``data``, which stays as it is. Collections that are one, through aliases of an anchor,
    are one in the copy, so what is met twice is changed once. ``renamed`` has, by the ids of mappings of the
    copy, their other keys; ``rewrite`` what makes a text of another one that is written in several lines.
    ``notes`` are texts, each with the place that it is about; ``spoken_of`` needs no other word.
    """

    def __init__(self, data: Any) -> None:
        self.data = data
        self._copies: dict[int, Any] = {}
        self._copy = copy.deepcopy(data, self._copies)
        self._settled: set[Path] = set()
        self.renamed: dict[int, dict[Any, str]] = {}
        self.rewrite: dict[tuple[str, str], Callable[[str], str]] = {}
        self.notes: list[tuple[Path, str]] = []
        self.spoken_of: set[Path] = set()

    def mapping(self, path: Path) -> dict[str, Any]:
        """The mapping at ``path``. Raises PlaceError where there is none."""
        value = self._get(path)
        if not isinstance(value, dict):
            name = f"{path[-2]}[{path[-1]}]" if isinstance(path[-1], int) else path[-1]
            raise PlaceError(path, "{name} is not a mapping", name=name)
        return value

    def listed(self, path: Path) -> list[Any]:
        """The items of the list at ``path``, which may be missing. Raises PlaceError for anything else."""
        value = self._get(path)
        if not isinstance(value, (list, type(None))):
            raise PlaceError(path, "{path} is not a list", path=path[-1])
        return value or []

    def _get(self, path: Path) -> Any:
        try:
            return at(self.data, path)
        except LookupError:
            return None

    def copy_of(self, value: Any) -> Any:
        """What a part of the data has become."""
        return self._copies.get(id(value), value) if isinstance(value, (dict, list)) else value

    def result(self) -> Any:
        """The changed data."""
        return self.final(self._copy)

    def final(self, value: Any) -> Any:
        """A part of the copy as it is in the result."""
        if isinstance(value, dict):
            return {key: self.final(held) for key, held in value.items()}
        if isinstance(value, list):
            return [self.final(item) for item in value if item is not GONE]
        return value

    def _holder(self, path: Path) -> tuple[Any, Any]:
        """The copy of what holds the place at ``path``, and the place's key there."""
        holder = self.copy_of(at(self.data, path[:-1]))
        return holder, self.renamed.get(id(holder), {}).get(path[-1], path[-1])

    def put(self, path: Path, key: str, value: Any, first: bool = False) -> None:
        """Add an entry to the mapping at ``path``, behind the others or before them."""
        holder = self.copy_of(at(self.data, path))
        entries = {key: value, **holder} if first else {**holder, key: value}
        holder.clear()
        holder.update(entries)

    def append(self, path: Path, value: Any) -> None:
        """Add a last item to the list at ``path``."""
        present = at(self.data, path)
        if value not in self.copy_of(present)[len(present) :]:
            self.copy_of(present).append(value)

    def rename(self, path: Path, key: str) -> None:
        """Give the entry at ``path`` another key."""
        holder, old = self._holder(path)
        entries = [(key if each == old else each, value) for each, value in holder.items()]
        holder.clear()
        holder.update(entries)
        self.renamed.setdefault(id(holder), {})[path[-1]] = key

    def set(self, path: Path, value: Any) -> None:
        """Write another value at ``path``."""
        holder, key = self._holder(path)
        holder[key] = value
        self._settled.add(path)

    def delete(self, path: Path) -> None:
        """Take the entry or item at ``path`` away."""
        holder, key = self._holder(path)
        if isinstance(holder, list):
            holder[key] = GONE
        else:
            holder.pop(key, None)
        self._settled.add(path)

    def entries(self, path: Path, added: Any, removed: Collection[Any] = ()) -> None:
        """Add entries to the list or mapping at ``path``, and remove some by their numbers or keys.

        It is made where it is missing, and goes when it is empty. What a mapping has stays as it is.
        """
        present = at(self.data, path[:-1]).get(path[-1])
        if not isinstance(present, type(added)):
            if added and path[-1] in at(self.data, path[:-1]):
                self.set(path, added)
            elif added:
                self.put(path[:-1], str(path[-1]), added)
            return
        new = [each for each in added if isinstance(added, list) or each not in present]
        if removed and len(removed) == len(present) and not new:
            self.delete(path)
            return
        for step in removed:
            self.delete((*path, step))
        for each in new:
            if isinstance(added, dict):
                self.put(path, each, added[each])
            else:
                self.append(path, each)

    def note(self, path: Path, text: str, /, **values: object) -> None:
        """Say what becomes of a place and all that is below it."""
        self.remark(path, text, **values)
        self.spoken_of.add(path)

    def remark(self, path: Path, text: str, /, **values: object) -> None:
        """Say something else of a place."""
        self.notes.append((path, _(text, **values)))

    def settled(self, path: Path) -> bool:
        """Whether a place is changed, removed or spoken of already."""
        places = self._settled | self.spoken_of
        return any(path[:length] in places for length in range(1, len(path) + 1))
