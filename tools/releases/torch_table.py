"""api_db/torch_names.csv: what each release of torch, torchvision and torchaudio has, as ranges of
torch versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from migrator.api_support import tables
from tools.releases import writing
from tools.releases.torch_facts import MAYBE, Fact, Facts, Release

PACKAGES = ("torch", "torchvision", "torchaudio")
ByVersion = dict[str, Facts]


def set_releases(api_db: Path, package: str, read: Mapping[str, tuple[str, Release]]) -> None:
    """Put several releases of a package into the tables: by torch version, each with its own number.

    What the compiled part of one has is asked of all that are given together. Of the others the parts are
    not at hand: there such a name may be, unless the table knew it before.
    """
    order, facts = writing.order(api_db, "torch_wheels"), by_version(api_db)
    known = sure(facts)
    for version, (_, release) in read.items():
        held = facts.setdefault(version, {})
        for name in [name for name, fact in held.items() if fact != MAYBE]:
            if name.partition(".")[0] == package:
                del held[name]
        # What may be there for another release's sake still may.
        held.update(release.facts)
    compiled = frozenset().union(*(release.compiled for _, release in read.values()))
    for version, (_, release) in read.items():
        # A name that another release has may have lost its stub, unless the table knew the release before.
        others = (name for name in known if name.rpartition(".")[0] in ("torch", "torch._C.TensorBase"))
        asked = compiled if version in order else compiled.union(others)
        for name in asked - facts[version].keys() if package == "torch" else ():
            leaf = name.rpartition(".")[2]
            if leaf in release.words or leaf.endswith("Tensor"):
                facts[version][name] = MAYBE
    for version in facts.keys() - read.keys():
        for name in compiled - known - facts[version].keys():
            facts[version][name] = MAYBE
    _write_releases(api_db, package, {version: number for version, (number, _) in read.items()})
    writing.write_in(api_db, "torch_names", _lines(facts))


def by_version(api_db: Path) -> ByVersion:
    """What the table holds of each version."""
    order = writing.order(api_db, "torch_wheels")
    found: ByVersion = {version: {} for version in order}
    for name, first, last, kind, of, cell in tables.rows("torch_names", api_db):
        words = [word.partition("@")[::2] for word in cell.split()]
        for version in writing.inside(first, last, order):
            number = tables.as_tuple(version)
            held = tuple(word for word, span in words if tables.holds_at(span, number))
            found[version][name] = Fact(kind, of, held)
    return found


def sure(facts: Mapping[str, Facts]) -> set[str]:
    """The names that are surely there, at some version."""
    return {name for held in facts.values() for name, fact in held.items() if fact != MAYBE}


def _write_releases(api_db: Path, package: str, numbers: Mapping[str, str]) -> None:
    rows = {row["torch"]: row for row in writing.records("torch_wheels", api_db)}
    empty = dict.fromkeys(writing.COLUMNS["torch_wheels"].split(), "")
    for version, number in numbers.items():
        row = rows.setdefault(version, {**empty, "torch": version})
        row[f"{package}_wheel"] = number
        read = [f"{name} wheel" for name in PACKAGES if row[f"{name}_wheel"]]
        row["source"] = "; ".join(read)
    writing.write_in(api_db, "torch_wheels", [list(row.values()) for row in rows.values()])


def _lines(facts: Mapping[str, Facts]) -> Iterator[Sequence[str]]:
    order = sorted(facts, key=tables.as_tuple)
    for name in sure(facts):
        here = {version: facts[version][name] for version in order if name in facts[version]}
        keys = {version: (fact.kind, fact.of) for version, fact in here.items()}
        for first, last, (kind, of) in tables.ranges(keys, order):
            inside = writing.inside(first, last, order)
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
