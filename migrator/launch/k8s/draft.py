"""The changes of one document, as they are found, and what is to be said of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from migrator.launch.k8s.changes import Append, Change, Delete, Path, Put, Set


@dataclass
class Draft:
    """``notes`` are texts, each with the place that it is about; ``spoken_of`` needs no other word."""

    changes: list[Change] = field(default_factory=list)
    notes: list[tuple[Path, str]] = field(default_factory=list)
    spoken_of: set[Path] = field(default_factory=set)

    def note(self, path: Path, text: str) -> None:
        """Say what becomes of a place and all that is below it."""
        self.notes.append((path, text))
        self.spoken_of.add(path)

    def remark(self, path: Path, text: str) -> None:
        """Say something else of a place."""
        self.notes.append((path, text))

    def delete(self, path: Path) -> None:
        """Remove an entry or item."""
        self.changes.append(Delete(path))

    def items(
        self, path: Path, holder: Mapping[str, Any], key: str, removed: Collection[int], added: Sequence[Any]
    ) -> None:
        """Change the list ``key`` of what lies at ``path``: made where it is missing, removed when empty."""
        present = holder.get(key)
        place = (*path, key)
        if isinstance(present, list):
            if removed and len(removed) == len(present) and not added:
                self.delete(place)
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
                self.delete(place)
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
