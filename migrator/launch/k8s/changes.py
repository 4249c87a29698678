"""Changes of a document: what they are, how they are found, and what becomes of its data."""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Optional, Union

from migrator.language import _
from migrator.launch.k8s.cluster import PlaceError

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
        holder = at(result, holder_of(change))
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


def holder_of(change: Change) -> Path:
    """Where the collection lies that a change alters."""
    return change.path if isinstance(change, (Put, Append)) else change.path[:-1]


@dataclass
class Draft:
    """The changes of one document, as they are found, and what is to be said of them.

    ``notes`` are texts, each with the place that it is about; ``spoken_of`` needs no other word.
    """

    changes: list[Change] = field(default_factory=list)
    notes: list[tuple[Path, str]] = field(default_factory=list)
    spoken_of: set[Path] = field(default_factory=set)

    def note(self, path: Path, text: str, /, **values: object) -> None:
        """Say what becomes of a place and all that is below it."""
        self.remark(path, text, **values)
        self.spoken_of.add(path)

    def remark(self, path: Path, text: str, /, **values: object) -> None:
        """Say something else of a place."""
        self.notes.append((path, _(text, **values)))

    def items(
        self, path: Path, holder: Mapping[str, Any], key: str, removed: Collection[int], added: Sequence[Any]
    ) -> None:
        """Change the list ``key`` of what lies at ``path``: made where it is missing, removed when empty."""
        present = holder.get(key)
        place = (*path, key)
        if isinstance(present, list):
            if removed and len(removed) == len(present) and not added:
                self.changes.append(Delete(place))
                return
            self.changes += [Delete((*place, number)) for number in removed]
            self.changes += [Append(place, value) for value in added]
        elif added:
            self.changes.append(Set(place, list(added)) if key in holder else Put(path, key, list(added)))

    def entries(
        self,
        path: Path,
        holder: Mapping[Any, Any],
        key: str,
        added: Mapping[str, Any],
        removed: Collection[str] = (),
    ) -> None:
        """The same with a mapping; entries that it has stay as they are."""
        present = holder.get(key)
        place = (*path, key)
        if isinstance(present, dict):
            new = {name: value for name, value in added.items() if name not in present}
            if removed and len(removed) == len(present) and not new:
                self.changes.append(Delete(place))
                return
            self.changes += [Delete((*place, name)) for name in removed]
            self.changes += [Put(place, name, value) for name, value in new.items()]
        elif added:
            value = dict(added)
            self.changes.append(Set(place, value) if key in holder else Put(path, key, value))

    def settled(self, path: Path) -> bool:
        """Whether a place is changed, removed or spoken of already."""
        places = {
            change.path for change in self.changes if isinstance(change, (Delete, Set))
        } | self.spoken_of
        return any(path[:length] in places for length in range(1, len(path) + 1))


def mapping(value: Any, path: Path) -> dict[str, Any]:
    """``value``, which must be a mapping. Raises PlaceError otherwise."""
    if not isinstance(value, dict):
        name = f"{path[-2]}[{path[-1]}]" if isinstance(path[-1], int) else path[-1]
        raise PlaceError(path, "{name} is not a mapping", name=name)
    return value


def listed(value: Any, path: Path) -> list[Any]:
    """``value``, which must be a list or missing. Raises PlaceError otherwise."""
    if not isinstance(value, (list, type(None))):
        raise PlaceError(path, "{path} is not a list", path=path[-1])
    return value or []
