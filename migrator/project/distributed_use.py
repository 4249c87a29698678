"""Whether a file shows that its program can train with several ranks: by what it imports and calls.

The names are in ``reports/distributed/names.yaml``.
"""

from __future__ import annotations

import re
from functools import cache

from migrator.data_folders import reports_yaml
from migrator.names.index import ModuleIndex
from migrator.names.tree import imported

_LIBRARIES, _CALLS = "distributed_libraries", "distributed_calls"


def is_distributed(text: str) -> bool:
    """Whether a file imports a library that starts ranks, or calls what sets them up.

    Comments, strings and names of its own say nothing; nor does a file that cannot be parsed.
    """
    if not _pattern().search(text):
        return False
    try:
        index = ModuleIndex(text, distributed_words())
        imports = (name for node in index.imports for name in imported(node))
        return any(map(starts_ranks, imports)) or any(
            listed(_CALLS, index.qualified_name(call.func)) for call in index.calls
        )
    except Exception:  # a file that cannot be parsed, or a mistake of ours: the check of the file tells it
        return False


def starts_ranks(name: str) -> bool:
    """Whether what a file imports is, or is of, a library that starts or joins ranks."""
    return listed(_LIBRARIES, name)


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


@cache
def _pattern() -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(sorted(distributed_words()))})\b")


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
