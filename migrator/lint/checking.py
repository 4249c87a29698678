"""From the files of a run to their findings: from the cache, or by the engine where it does not know them.

There is a set of rules for each choice of rules and torch version that the files ask for. The engine is
loaded only where the cache does not know a file: most runs need none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Callable, Optional

from migrator.files.document import type_of
from migrator.files.errors import Unreadable, shown
from migrator.files.source import read_settings
from migrator.findings.finding import Finding, begins
from migrator.light import NamedTuple
from migrator.lint.files import Target, data_of
from migrator.lint.options import Options, RuleSet, rule_set, with_origin
from migrator.run.cache import Cache, digest
from migrator.run.loading import Loader, PythonFile, size_of
from migrator.run.processes import Progress, processes_for, spread

if TYPE_CHECKING:
    from migrator.core.rules import Rules
    from migrator.matchers.packs import Rule


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
    cache.put(key, [replace(rule, examples=()) for rule in rules])
    return rules


Trouble = Callable[[str], None]


class Checked(NamedTuple):
    """The findings that remain in a file; ``trouble`` is why it could not be looked at."""

    found: tuple[Finding, ...] = ()
    trouble: str = ""


def read_files(
    targets: Sequence[Target], loader: Loader, noqa: bool, trouble: Trouble, progress: Progress
) -> list[tuple[Target, bytes]]:
    """Read each file once; gives those that can be looked at, with the digest of their content.

    ``trouble`` is given a line for each other one.
    """
    files = []
    last: Optional[tuple[Options, RuleSet]] = None  # the next file's are the same
    for number, target in enumerate(targets):
        progress("reading", number, len(targets))
        options = target.options
        try:
            if last is None or last[0] is not options:
                last = options, rule_set(options, noqa)
            data = data_of(target)
        except ValueError as error:  # UnknownVersion, ConfigError
            trouble(with_origin(options, error))
        except Unreadable as error:
            trouble(f"{shown(target.path)}: {error}")
        else:
            content = digest(data)
            if type_of(target.name, data):
                loader.other_names.append(target.name)
            else:
                loader.add(PythonFile(target.name, target.place, target.data), data, content)
            files.append((target.judged_by(last[1]), content))
    progress("reading", len(targets), len(targets))
    return files


def check_files(
    files: Sequence[tuple[Target, bytes]],
    loader: Loader,
    cache: Cache,
    processes: Optional[int],
    trouble: Trouble,
    progress: Progress,
) -> list[Checked]:
    """What is found in each of the files that ``read_files`` gave.

    ``trouble`` is given a line for each set of rules that cannot be used.
    """
    project = loader.key()
    results: list[Optional[Checked]] = []
    for target, content in files:
        found, path = cache.get(_key(target, content, project), tuple[Finding, ...]), target.path
        # The user may have spelled its path otherwise then.
        own = found and tuple(item if item.file == path else item._replace(file=path) for item in found)
        results.append(None if own is None else Checked(own))
    ready: set[RuleSet] = set()
    missing = []
    for place in (place for place, known in enumerate(results) if known is None):
        target = files[place][0]
        try:  # the rules are made for the processes to come, too
            if target.rules not in ready:
                rules_of(target.rules, cache)
            ready.add(target.rules)
            missing.append(place)
        except ValueError as error:  # RuleError
            trouble(with_origin(target.options, error))
    if missing:
        from migrator.lint.file import check_target

        unknown = [files[place][0] for place in missing]
        size = sum(size_of(target.place) for target in unknown if target.data is None)
        done = spread(unknown, processes_for(size, processes), check_target, loader.project)
        for number, (place, target, (content, checked)) in enumerate(zip(missing, unknown, done), 1):
            results[place] = checked
            if not checked.trouble:
                cache.put(_key(target, content, project), checked.found)
            progress("linting", number, len(missing))
    cache.flush()
    return [checked or Checked() for checked in results]


def _key(target: Target, content: bytes, project: bytes) -> bytes:
    name = target.name.encode("utf-8", "surrogatepass")
    return digest(content, _rules_key(target.rules), project, name, repr(target.ignored).encode())


@cache
def _rules_key(rules: RuleSet) -> bytes:
    return digest(repr(rules).encode("utf-8", "surrogatepass"))
