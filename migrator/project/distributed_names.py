"""What ``reports/distributed/names.yaml`` says."""

from __future__ import annotations

from migrator.data_folders import reports_yaml


def entries(table: str) -> list[str]:
    """What a table holds."""
    found: list[str] = reports_yaml("distributed/names.yaml")[table]
    return found


def listed(table: str, name: str) -> bool:
    """Whether a table holds a full name, the package of it, or its last part behind a dot."""
    parts = name.split(".")
    packages = (".".join(parts[:count]) for count in range(1, len(parts) + 1))
    known = entries(table)
    return any(package in known for package in packages) or f".{parts[-1]}" in known
