"""api_db/wheel_names.csv, from wheels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from migrator.api_support import tables
from migrator.api_support.releases.wheels import Wheel


def names_by_version(api_db: Path, package: str) -> dict[str, dict[tuple[str, str], str]]:
    """``{torch version: {(module, name): kind}}`` for the wheels of a package that were read."""
    column = wheel_column(package)
    versions = [row["torch"] for row in tables.records("versions", api_db) if row[column]]
    known: dict[str, dict[tuple[str, str], str]] = {version: {} for version in versions}
    for module, name, kind, first, last in tables.rows("wheel_names", api_db):
        if module.split(".")[0] == package:
            for version in tables.inside(first, last, versions):
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
        lines += [(*name, newest_kind[name], first, last) for name, first, last in tables.spans(held, order)]
    tables.write_in(api_db, "wheel_names", lines)
