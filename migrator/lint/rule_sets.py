"""The rules of a run: one set for each choice of rules and torch version that its files ask for."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Optional

from migrator.core.settings import Settings
from migrator.files.errors import Unreadable, shown
from migrator.files.source import read_settings
from migrator.findings.finding import begins
from migrator.lint.options import ConfigError, Options, torch_version
from migrator.run.cache import Cache, digest

if TYPE_CHECKING:
    from migrator.core.rules import Rules


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
    from migrator.lint.known_packs import load_known
    from migrator.matchers.packs import choose, load, load_all

    load_pack = partial(load_known, cache) if cache else load
    rules = rules_for(chosen.settings, load_pack)
    unknown = [code for code in chosen.mentioned if not any(begins(code, rule) for rule in rules.every)]
    if unknown:  # rules that are off, or none at all
        choose(load_all(chosen.settings.rule_files, unknown, load_pack), unknown, ())
    return rules


def _pack_bytes(file: str) -> bytes:
    try:
        return read_settings(file)
    except Unreadable as error:
        raise ConfigError(f"{shown(file)}: {error}") from None
