"""What torch_npu registers for aten operators (api_db/kernels.csv), and what only it has (custom_ops.csv).

And what torch itself has for each (native_functions.csv), and the names of both (wheel_names.csv).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from migrator.api_support import tables
from tools.releases import writing
from tools.releases.operator_lists import Natives
from tools.releases.wheels import Wheel

Held = dict[str, set[str]]  # an operator or API -> versions
Rest = Mapping[str, Sequence[str]]  # API -> the columns of custom_ops.csv behind its range


def set_kernels(api_db: Path, version: str, ops: frozenset[str]) -> None:
    """Make kernels.csv say that the torch_npu for a version has kernels for ``ops`` and for no others.

    versions.csv knows the version already.
    """
    order = writing.order(api_db)
    held: Held = {op: set() for op in ops}
    others: list[Sequence[str]] = []
    for op, first, last, kind, source in tables.rows("kernels", api_db):
        if kind == "kernel":
            held.setdefault(op, set()).update(writing.inside(first, last, order))
        elif not (op in ops and first == last == version):
            others.append((op, first, last, kind, source))
    for op, versions in held.items():
        versions.discard(version)
        if op in ops:
            versions.add(version)
    write_kernels(api_db, held, others)


def write_kernels(api_db: Path, held: Held, others: Iterable[Sequence[str]]) -> None:
    """Write kernels.csv: the versions at which each operator has a kernel, and the rows on the others."""
    spans = writing.spans(held, writing.order(api_db))
    lines = [(op, first, last, "kernel", "torch_npu operator lists") for op, first, last in spans]
    writing.write_in(api_db, "kernels", [*others, *lines])


def set_own(api_db: Path, version: str, custom: frozenset[str], own_names: frozenset[str]) -> None:
    """Make custom_ops.csv say what the torch_npu for a version has, and nothing else of it.

    versions.csv knows the version already. Operators that no release had come new into
    the table; Python names only by a person's hand.
    """
    order = writing.order(api_db)
    ops = {"torch_npu." + op.partition(".")[0] for op in custom}
    held: Held = {api: set() for api in ops}
    rest: dict[str, Sequence[str]] = dict.fromkeys(ops, ("op", "", "", "", "yaml"))
    for api, first, last, *columns in tables.rows("custom_ops", api_db):
        held.setdefault(api, set()).update(writing.inside(first, last, order))
        rest[api] = columns
    for api, versions in held.items():
        versions.discard(version)
        if api in own_names or (api in ops and rest[api][0] == "op"):
            versions.add(version)
    write_own(api_db, held, rest)


def write_own(api_db: Path, held: Held, rest: Rest) -> None:
    """Write custom_ops.csv: the versions that have each API, and its other columns."""
    spans = writing.spans(held, writing.order(api_db))
    writing.write_in(api_db, "custom_ops", [(api, first, last, *rest[api]) for api, first, last in spans])


def set_natives(api_db: Path, read: Mapping[str, Natives]) -> None:
    """Put the lists of some torch versions into the table, in place of what it has of them."""
    order = writing.order(api_db, "torch_wheels")
    held: dict[tuple[str, str], set[str]] = {}
    for operator, first, last, kind in tables.rows("native_functions", api_db):
        inside = set(writing.inside(first, last, order))
        held[operator, kind] = held.get((operator, kind), set()) | (inside - read.keys())
    for version, natives in read.items():
        for key in natives.items():
            held.setdefault(key, set()).add(version)
    rows: list[Sequence[str]] = [
        (operator, first, last, kind) for (operator, kind), first, last in writing.spans(held, order)
    ]
    writing.write_in(api_db, "native_functions", rows)


def names_by_version(api_db: Path, package: str) -> dict[str, dict[tuple[str, str], str]]:
    """``{torch version: {(module, name): kind}}`` for the wheels of a package that were read."""
    column = wheel_column(package)
    versions = [row["torch"] for row in writing.records("versions", api_db) if row[column]]
    known: dict[str, dict[tuple[str, str], str]] = {version: {} for version in versions}
    for module, name, kind, first, last in tables.rows("wheel_names", api_db):
        if module.split(".")[0] == package:
            for version in writing.inside(first, last, versions):
                known[version][module, name] = kind
    return known


def wheel_column(package: str) -> str:
    """The column of versions.csv for wheels of a package."""
    return "torch_wheel" if package == "torch" else "npu_wheel"


def set_names(wheel: Wheel, api_db: Path) -> None:
    """Put the names of a wheel into wheel_names.csv, in place of those of another one for its version.

    versions.csv knows the wheel already.
    """
    known = {package: names_by_version(api_db, package) for package in ("torch", "torch_npu")}
    known[wheel.package][wheel.torch_version] = {
        (module, name): kind for module, names in wheel.modules.items() for name, kind in names.items()
    }
    lines: list[Sequence[str]] = []
    for by_version in known.values():
        order = sorted(by_version, key=tables.as_tuple)
        held: dict[tuple[str, str], list[str]] = {}
        newest_kind: dict[tuple[str, str], str] = {}
        for version in order:
            newest_kind.update(by_version[version])
            for name in by_version[version]:
                held.setdefault(name, []).append(version)
        lines += [(*name, newest_kind[name], first, last) for name, first, last in writing.spans(held, order)]
    writing.write_in(api_db, "wheel_names", lines)
