"""Rule packs from the cache: to read them as YAML takes longer than to lint a changed file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from migrator.matchers.packs import Rule, load
from migrator.run.cache import Cache, digest

_TEXTS = ("match", "excluded", "words", "references")


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
        packed = [_packed(rule) for rule in rules]
        if _bears_json(packed):
            self._cache.put(key, packed)
        return rules


def _packed(rule: Rule) -> dict[str, Any]:
    values = {key: value for key, value in vars(rule).items() if key != "examples"}
    return {**values, **{key: list(values[key]) for key in _TEXTS}}


def _rule(values: dict[str, Any]) -> Rule:
    return Rule(**{**values, **{key: tuple(values[key]) for key in _TEXTS}})


def _bears_json(packed: list[dict[str, Any]]) -> bool:
    """Whether JSON gives back what it is given: YAML has dates, and keys that are no texts."""
    try:
        return bool(json.loads(json.dumps(packed)) == packed)
    except (TypeError, ValueError):
        return False
