"""Rule packs from the cache: to read them as YAML takes longer than to lint a changed file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from migrator.files.errors import Unreadable
from migrator.files.source import read_settings
from migrator.matchers.packs import Rule, load
from migrator.run.cache import Cache, digest
from migrator.run.json_form import to_json


def load_known(cache: Cache, path: Path) -> list[Rule]:
    """The rules of a pack as ``packs.load`` gives them; they may have no examples. Raises RuleError."""
    try:
        key = digest(b"pack", str(path).encode("utf-8", "surrogatepass"), read_settings(path))
    except Unreadable:
        return load(path)  # which says what is wrong
    known = cache.get(key, tuple[Rule, ...])
    if known is not None:
        return list(known)
    rules = load(path)
    cache.put(key, [to_json(replace(rule, examples=())) for rule in rules])
    return rules
