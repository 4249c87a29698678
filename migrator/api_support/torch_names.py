"""Which public names, and keyword parameters of them, torch and torchvision have at a version.

What the tables say is read from the releases' own sources and stubs. Where these leave something open, as
with names that only the compiled part of some builds has, the answer is that it is not known: a name
is absent only if it was seen at another version, and nothing at this one may bind it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from migrator.api_support import tables
from migrator.language import _
from migrator.light import NamedTuple

_OPEN, _BASE, _UNKNOWN = "*", "^", "?"


class _Row(NamedTuple):
    """A row of torch_names.csv: what a name is from one torch version to another."""

    first: str
    last: str
    kind: str  # module, class, function, value, alias, or maybe
    of: tuple[str, ...]  # what an alias stands for, or the bases of a class
    parameters: tuple[str, ...]


class TorchNames(NamedTuple):
    """The names of one version. Names are qualified: ``torch.amp.GradScaler``, ``torch.Tensor.abs``."""

    version: tables.Version

    def present(self, name: str) -> bool:
        """Whether this version is seen to have a name. What is not known is not present."""
        return _seen(name, self.version) is True

    def kind(self, name: str) -> str:
        """module, class, function, value or alias; maybe where it may not be there; '' without a row."""
        row = _row(name, self.version)
        return row.kind if row else ""

    def stands_for(self, name: str) -> str:
        """Where in the table an alias, or a member of one or of a derived class, is; '' for others."""
        row = _row(name, self.version)
        if row is not None:
            return row.of[0] if row.kind == "alias" and row.of else ""
        owner, _, member = name.rpartition(".")
        holds = _row(owner, self.version) if owner else None
        if holds is None:
            other = self.stands_for(owner) if owner else ""
            return f"{other}.{member}" if other else ""
        return _name_in_base(holds, member, self.version)

    def absent(self, name: str) -> bool:
        """Whether it is a fact that this version does not have a name that another one has."""
        return _seen(name, self.version) is False and (
            self.known(name) or self.absent(name.rpartition(".")[0])
        )

    def known(self, name: str) -> bool:
        """Whether some version is seen to have a name: then its absence from another is a fact."""
        return any(_seen(name, tables.as_tuple(version)) for version in versions())

    def absence(self, name: str) -> str:
        """``first in torch 2.0`` or ``last in torch 1.13`` of an absent name; '' of every other."""
        return when(self._spans_of(name), self.version) if self.absent(name) else ""

    def is_later(self, name: str) -> bool:
        """Whether a name is absent, and a newer version has it."""
        return self.absent(name) and bool(_later(self._spans_of(name), self.version))

    def _spans_of(self, name: str) -> tuple[tuple[str, str], ...]:
        return spans(name) or self._spans_of(name.rpartition(".")[0])  # a member of it may be in no table

    def absent_members(self, owner: str) -> frozenset[str]:
        """The members of a class that are missing in this version: its own, and those of its bases."""
        bases = {base for row in _rows(owner) for base in row.of}
        inherited = {f"{owner}.{name}" for base in bases for name in self.absent_members(base)}
        lines = [line.split(",", 3) for line in tables.starting("torch_names", f"{owner}.")]
        gone = {name for name, first, last, _ in lines if not tables.covers(first, last, self.version)}
        return frozenset(name[len(owner) + 1 :] for name in gone | inherited if self.absent(name))

    def lacking(self, name: str) -> frozenset[str]:
        """The keyword parameters that a callable takes at another version and certainly not at this one."""
        here = _words(name, self.version) if _varies(name) else (_UNKNOWN,)
        if _OPEN in here or _UNKNOWN in here:  # there may be others
            return frozenset()
        every = (_named(name, tables.as_tuple(version)) for version in versions())
        return frozenset().union(*every).difference(here)


def of_version(version: str) -> TorchNames:
    """The names of a torch version, such as ``2.6.0`` (``TorchVersion.text``)."""
    return TorchNames(tables.as_tuple(version))


@cache
def versions() -> tuple[str, ...]:
    """The torch versions that the table is about, oldest first."""
    return tuple(tables.grouped("torch_wheels"))


@cache
def _is_read(package: str, version: tables.Version) -> bool:
    """Whether the release of a package for a torch version was read; one behind the newest is like that."""
    column = {"torch": 1, "torchvision": 2, "torchaudio": 3}.get(package)
    wheels = tables.grouped("torch_wheels").items()
    read = [tables.as_tuple(torch) for torch, rows in wheels if column and rows[0][column]]
    return version in read or (bool(read) and version > read[-1])


@cache
def _rows(name: str) -> tuple[_Row, ...]:
    found = []
    for line in tables.starting("torch_names", f"{name},"):
        _, first, last, kind, of, parameters = line.split(",")
        found.append(_Row(first, last, kind, tuple(of.split()), tuple(parameters.split())))
    return tuple(found)


def _row(name: str, version: tables.Version) -> _Row | None:
    return tables.first_at(_rows(name), version)


@cache
def _seen(name: str, version: tables.Version) -> bool | None:
    """Whether a version has a name; None where it cannot be said."""
    row = _row(name, version)
    if row is not None:
        return None if row.kind == "maybe" else True
    owner, _, member = name.rpartition(".")
    if not owner or not _is_read(name.partition(".")[0], version):
        return None
    holds = _row(owner, version)
    if holds is None:
        seen = _seen(owner, version)
        if not seen:
            return seen  # What lies in an absent module or class is absent with it.
        outer, _, last = owner.rpartition(".")
        holds, member = _row(outer, version), f"{last}.{member}"
        return _seen(f"{holds.of[0]}.{member}", version) if holds and holds.kind == "alias" else None
    if holds.kind == "alias":
        return _seen(f"{holds.of[0]}.{member}", version)
    if holds.kind == "class":
        found = [None if base == _UNKNOWN else _seen(f"{base}.{member}", version) for base in holds.of]
        return True if True in found else None if None in found else False
    # Not in the table: members of values and functions; of private modules all but bases of public classes.
    is_read = holds.kind == "module" and not holds.of and "._" not in owner
    return False if is_read else None


def _name_in_base(holds: _Row, member: str, version: tables.Version) -> str:
    """The name of a member in what an alias stands for, or in a base of a class; '' where none has it."""
    others = (f"{base}.{member}" for base in holds.of if base != _UNKNOWN)
    there = (other for other in others if _seen(other, version))
    return next(there, "") if holds.kind in ("alias", "class") else ""


def listed() -> Iterator[str]:
    """The public names in the table, one spelling of each; a name stands before what lies in it."""
    last = ""
    for line in sorted(tables.lines("torch_names"), key=lambda line: line.partition(",")[0].split(".")):
        name, _, _, kind, _ = line.split(",", 4)
        if name != last and kind != "alias" and not any(part[:1] == "_" for part in name.split(".")):
            last = name
            yield name


@cache
def spans(name: str, parameter: str = "") -> tuple[tuple[str, str], ...]:
    """The ranges of versions that are seen to have a name, or a parameter of it; an open end is empty."""
    there: dict[str, tuple[()]] = {}
    for version in versions():
        number = tables.as_tuple(version)
        if parameter in _named(name, number) if parameter else _seen(name, number):
            there[version] = ()
    return tuple((first, last) for first, last, _ in tables.ranges(there, versions()))


def _later(there: tuple[tuple[str, str], ...], version: tables.Version) -> str:
    """The first version that is newer and in one of the ranges; empty for none."""
    return next((first for first, _ in there if first and tables.as_tuple(first) > version), "")


def when(there: tuple[tuple[str, str], ...], version: tables.Version) -> str:
    """``first in torch 2.0`` or ``last in torch 1.13``, of ranges that a version is in none of."""
    later = _later(there, version)
    if later:
        return _("first in torch {later}", later=short(later))
    return _("last in torch {earlier}", earlier=short(there[-1][1]))


@cache
def short(version: str) -> str:
    """A version without its last number, where the table has one release of that line only."""
    line = version.rpartition(".")[0]
    return line if sum(other.startswith(f"{line}.") for other in versions()) == 1 else version


@cache
def _varies(name: str) -> bool:
    """Whether a callable may take other keywords at some version than at others: a quick look."""
    rows = _rows(name)
    if len(rows) != 1 or "@" in " ".join(rows[0].parameters):
        return True
    follows = rows[0].kind == "alias" or _BASE in rows[0].parameters
    return follows and any(base == _UNKNOWN or _varies(base) for base in rows[0].of)


def _named(name: str, version: tables.Version) -> tuple[str, ...]:
    """The keywords that a definition names at a version."""
    return tuple([word for word in _words(name, version) if word not in (_OPEN, _UNKNOWN)])


@cache
def _words(name: str, version: tables.Version) -> tuple[str, ...]:
    if not _is_read(name.partition(".")[0], version):
        return (_UNKNOWN,)
    row = _row(name, version)
    owner, _, member = name.rpartition(".")
    if row is None:
        holds = _row(owner, version) if owner else None
        other = _name_in_base(holds, member, version) if holds else ""
        return _words(other, version) if other else (_UNKNOWN,)
    if row.kind == "alias":
        return _words(row.of[0], version)
    if row.kind not in ("class", "function"):
        return (_UNKNOWN,)
    found: dict[str, None] = {}
    for cell in row.parameters:
        word, _, span = cell.partition("@")
        if not tables.holds_at(span, version):
            continue
        if word == _BASE:
            for base in row.of:
                found.update(dict.fromkeys((_UNKNOWN,) if base == _UNKNOWN else _words(base, version)))
        else:
            found[word] = None
    return tuple(found)
