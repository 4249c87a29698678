"""The rules of a run: one set for each choice of rules and torch version that its files ask for."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Optional

from migrator.core.settings import Settings
from migrator.files.errors import Unreadable, shown
from migrator.files.source import read_settings
from migrator.findings.finding import begins
from migrator.lint.options import ConfigError, Options, torch_version
from migrator.run.cache import Cache, digest
from migrator.run.json_form import to_json

if TYPE_CHECKING:
    from migrator.core.rules import Rules
    from migrator.matchers.packs import Rule


class RuleSet(NamedTuple):
    """What decides which findings there are, beside the files themselves.

    ``mentioned`` are the codes of per-file-ignores, fixable and unfixable: they are checked with the rest.
    With ``noqa`` off, comments suppress nothing.
    """

    settings: Settings
    mentioned: tuple[str, ...] = ()
    noqa: bool = True


def rule_set(options: Options, noqa: bool = True) -> RuleSet:
    """What of the options decides which findings there are. Raises UnknownVersion and ConfigError."""
    mentioned = {code for item in options.per_file_ignores for code in item.codes}
    mentioned.update(code for code in (*options.fixable, *options.unfixable) if code != "ALL")
    settings = Settings(
        version=torch_version(options),
        select=tuple(dict.fromkeys((*options.select, *options.extend_select))),
        ignore=options.ignore,
        rule_files=options.rules,
        hardware=options.hw,
        content=digest(*map(_pack_bytes, options.rules)).hex() if options.rules else "",
    )
    return RuleSet(settings, tuple(sorted(mentioned)), noqa)


def rules_of(chosen: RuleSet, cache: Optional[Cache] = None) -> Rules:
    """The rules of a set; with a ``cache`` they may have no examples.

    Raises RuleError and UnknownVersion, as Rules does.
    """
    from migrator.core.rules import rules_for
    from migrator.matchers.packs import choose, load, load_all

    load_pack = partial(_load_known, cache) if cache else load
    rules = rules_for(chosen.settings, load_pack)
    unknown = [code for code in chosen.mentioned if not any(begins(code, rule) for rule in rules.every)]
    if unknown:  # rules that are off, or none at all
        choose(load_all(chosen.settings.rule_files, unknown, load_pack), unknown, ())
    return rules


def _load_known(cache: Cache, path: Path) -> list[Rule]:
    """What ``packs.load`` gives, from the cache: to read YAML takes longer than to lint a changed file."""
    from migrator.matchers.packs import Rule, load

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


def _pack_bytes(file: str) -> bytes:
    try:
        return read_settings(file)
    except Unreadable as error:
        raise ConfigError(f"{shown(file)}: {error}") from None
