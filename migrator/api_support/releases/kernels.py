"""api_db/kernels.csv: what torch_npu registers for an aten operator."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from migrator.api_support import tables
from migrator.api_support.releases.wheel_names import read_versions

COLUMNS = ("op", "from", "to", "kind", "source")

_SOURCE = "torch_npu operator lists"


def set_release(api_db: Path, version: str, ops: frozenset[str]) -> None:
    """Make kernels.csv say that the torch_npu for a version has kernels for ``ops`` and for no others.

    versions.csv knows the version already.
    """
    order = [row["torch"] for row in read_versions(api_db)]
    held: dict[str, set[str]] = {}
    others: list[Sequence[str]] = []
    for op, first, last, kind, source in tables.rows("kernels", api_db):
        if kind == "kernel":
            held.setdefault(op, set()).update(tables.inside(first, last, order))
        elif not (op in ops and first == last == version):
            others.append((op, first, last, kind, source))
    for op in held.keys() | ops:
        held.setdefault(op, set()).discard(version)
        if op in ops:
            held[op].add(version)
    write(api_db, held, order, others)


def write(
    api_db: Path, held: dict[str, set[str]], order: Sequence[str], others: Iterable[Sequence[str]]
) -> None:
    """Write kernels.csv: the versions at which each operator has a kernel, and the rows on the others."""
    lines = list(others)
    for op, versions in held.items():
        for first, last, _ in tables.ranges(dict.fromkeys(versions, ()), order):
            lines.append((op, first, last, "kernel", _SOURCE))
    tables.write(api_db / "kernels.csv", COLUMNS, lines)
