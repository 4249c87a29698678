"""The names by which a file shows that its program trains with several ranks: distributed/names.yaml."""

from __future__ import annotations

from functools import cache

from migrator.data_folders import reports_yaml

_LIBRARIES, _CALLS = "distributed_libraries", "distributed_calls"


@cache
def distributed_words(calls_only: bool = False) -> frozenset[str]:
    """What the names begin with, and of torch's own what they end with: a file without it is not parsed.

    ``calls_only``: the words of the calls, which an import does not show.
    """
    return frozenset(
        entry.rpartition(".")[2] if calls_only or entry.startswith("torch.") else entry.partition(".")[0]
        for table in ((_CALLS,) if calls_only else (_LIBRARIES, _CALLS))
        for entry in entries(table)
    )


def entries(table: str) -> list[str]:
    """What a table of ``names.yaml`` holds."""
    found: list[str] = reports_yaml("distributed/names.yaml")[table]
    return found


def listed(table: str, name: str) -> bool:
    """Whether a table holds a full name, the package of it, or its last part behind a dot."""
    parts = name.split(".")
    packages = (".".join(parts[:count]) for count in range(1, len(parts) + 1))
    known = entries(table)
    return any(package in known for package in packages) or f".{parts[-1]}" in known
