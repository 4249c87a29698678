"""The coded limits of ``api_support.csv`` in words."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from migrator.api_support import tables


def limit_words(limits: Iterable[str]) -> list[str]:
    """Coded limits in words (limits.csv), one for each code; those that say that there is none come last."""
    parameters: dict[str, list[str]] = {}
    for limit in limits:
        code, colon, parameter = limit.partition(":")
        parameters.setdefault(code + colon, []).append(parameter)
    meanings = _meanings()
    words = [meanings.get(code, code).replace("{}", ", ".join(names)) for code, names in parameters.items()]
    return sorted(words, key=lambda word: word.startswith("no limit"))


@cache
def _meanings() -> dict[str, str]:
    return dict(tables.rows("limits"))
