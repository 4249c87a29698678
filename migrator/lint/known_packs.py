"""Rule packs from the cache: to read them as YAML takes longer than to lint a changed file."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

from migrator.matchers.packs import Rule, load
from migrator.run.cache import Cache, digest


class KnownPacks:
    """Loads rule packs as ``packs.load`` does, but for the examples of the rules."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    def load(self, path: Path) -> list[Rule]:
        """The rules of one file. Raises RuleError."""
        try:
            key = digest(b"pack", str(path).encode("utf-8", "surrogatepass"), path.read_bytes())
        except OSError:
            return load(path)  # which says what is wrong
        known = self._cache.get(key)
        if known is not None:
            return [_rule(values) for values in known]
        rules = load(path)
        self._cache.put(key, [_packed(rule) for rule in rules])
        return rules


def _packed(rule: Rule) -> dict[str, Any]:
    """What a rule was made from, but for its examples; JSON turns its tuples into lists."""
    return {field.name: getattr(rule, field.name) for field in fields(rule) if field.name != "examples"}


def _rule(values: dict[str, Any]) -> Rule:
    tuples = {key: tuple(value) for key, value in values.items() if isinstance(value, list)}
    return Rule(**{**values, **tuples})
