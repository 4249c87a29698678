"""What ``reports/distributed/names.yaml`` says."""

from __future__ import annotations

from functools import cache

import yaml

from migrator.data_folders import data_folder


@cache
def _read() -> dict[str, list[str]]:
    text = (data_folder("reports") / "distributed" / "names.yaml").read_text(encoding="utf-8")
    data: dict[str, list[str]] = yaml.safe_load(text)
    return data


def entries(table: str) -> list[str]:
    """What a table holds."""
    return _read()[table]


def listed(table: str, name: str) -> bool:
    """Whether a table holds a full name, the package of it, or its last part behind a dot."""
    parts = name.split(".")
    packages = (".".join(parts[:count]) for count in range(1, len(parts) + 1))
    return any(package in _read()[table] for package in packages) or f".{parts[-1]}" in _read()[table]
