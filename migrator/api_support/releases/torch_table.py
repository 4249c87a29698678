"""api_db/torch_names.csv: what each release of torch has, as ranges of versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from migrator.api_support import tables
from migrator.api_support.releases.torch_facts import Fact, Facts

_MAYBE = "maybe"


def by_version(api_db: Path) -> dict[str, Facts]:
    """What the table holds of each version."""
    order = versions(api_db)
    found: dict[str, Facts] = {version: {} for version in order}
    for name, first, last, kind, of, cell in tables.rows("torch_names", api_db):
        words = [word.partition("@")[::2] for word in cell.split()]
        for version in tables.inside(first, last, order):
            number = tables.as_tuple(version)
            held = (word for word, span in words if tables.holds_at(span, number))
            found[version][name] = Fact(kind, of, tuple(held))
    return found


def versions(api_db: Path) -> list[str]:
    """The torch versions that the table is about, oldest first."""
    return [row[0] for row in tables.rows("torch_releases", api_db)]


def write(api_db: Path, facts: Mapping[str, Facts]) -> None:
    """Write the table. Of what may be there only names are kept that surely are, at some version."""
    tables.write_in(api_db, "torch_names", _lines(facts))


def _lines(facts: Mapping[str, Facts]) -> Iterator[Sequence[str]]:
    order = sorted(facts, key=tables.as_tuple)
    sure = {name for held in facts.values() for name, fact in held.items() if fact.kind != _MAYBE}
    for name in sure:
        here = {version: facts[version][name] for version in order if name in facts[version]}
        keys = {version: (fact.kind, fact.of) for version, fact in here.items()}
        for first, last, (kind, of) in tables.ranges(keys, order):
            inside = tables.inside(first, last, order)
            yield name, first, last, kind, of, _cell({version: here[version] for version in inside}, order)


def _cell(facts: Mapping[str, Fact], order: Sequence[str]) -> str:
    """The parameters of a range; those that not all of its versions have with ranges of their own."""
    words: dict[str, list[str]] = {}
    # The newest has the order in which they are written.
    for version in reversed(list(facts)):
        for word in facts[version].parameters:
            words.setdefault(word, []).append(version)
    cells = []
    for word, held in words.items():
        if len(held) == len(facts):
            cells.append(word)
        else:
            spans = tables.ranges(dict.fromkeys(held, ()), order)
            cells += [f"{word}@{first}-{last}" for first, last, _ in spans]
    return " ".join(cells)
