"""api_db/wheel_names.csv, from wheels."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from migrator.api_support import tables
from migrator.api_support.releases.wheels import Wheel

COLUMNS = ("module", "name", "kind", "from", "to")

Row = dict[str, str]


def names_by_version(api_db: Path, package: str) -> dict[str, dict[tuple[str, str], str]]:
    """``{torch version: {(module, name): kind}}`` for the wheels of a package that were read."""
    versions = read_versions(api_db)
    column = wheel_column(package)
    known: dict[str, dict[tuple[str, str], str]] = {row["torch"]: {} for row in versions if row[column]}
    path = api_db / "wheel_names.csv"
    if path.exists():
        with open(path, encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                if row["module"].split(".")[0] == package:
                    for version, names in known.items():
                        if tables.covers(row["from"], row["to"], tables.as_tuple(version)):
                            names[row["module"], row["name"]] = row["kind"]
    return known


def read_versions(api_db: Path) -> list[Row]:
    """The rows of versions.csv, oldest first."""
    with open(api_db / "versions.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


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
        lines += _folded(by_version)
    tables.write(api_db / "wheel_names.csv", COLUMNS, lines)


def _folded(by_version: dict[str, dict[tuple[str, str], str]]) -> list[Sequence[str]]:
    order = sorted(by_version, key=tables.as_tuple)
    newest_kind: dict[tuple[str, str], str] = {}
    for version in order:
        newest_kind.update(by_version[version])
    lines: list[Sequence[str]] = []
    for (module, name), kind in newest_kind.items():
        held: dict[str, tuple[str, ...]] = {
            version: () for version in order if (module, name) in by_version[version]
        }
        lines += [(module, name, kind, first, last) for first, last, _ in tables.ranges(held, order)]
    return lines
