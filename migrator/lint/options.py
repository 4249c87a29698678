"""The options of a lint run for some files: as the code holds them, and how layers of them add up."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Callable

from migrator.command_options import Option, options_of
from migrator.core.settings import Settings
from migrator.files.errors import SourceError, Unreadable, shown
from migrator.files.patterns import matcher
from migrator.files.source import read_settings
from migrator.findings.finding import SEVERITIES, Finding, Severity, longest_beginning
from migrator.language import MessageError, _, did_you_mean
from migrator.light import NamedTuple
from migrator.run.cache import digest

OPTIONS = options_of("lint")
KEYS = {option.name: option for option in OPTIONS if option.key}


_EVERYWHERE = Path(os.sep)


class ConfigError(MessageError):
    """A configuration that cannot be used; its text is the user's line."""


class Scope(NamedTuple):
    """Patterns as ``.gitignore`` reads them, below one folder; ``values`` hold for the files that they fit.

    These are options, or the codes of rules that are not used there (or elsewhere, for a pattern with ``!``).
    """

    patterns: tuple[str, ...]
    root: Path
    values: Any = None

    def fits(self, path: Path) -> bool:
        """Whether the patterns fit a file, or a folder that it is in."""
        fits = path_matcher(self.patterns, self.root)
        folders = (folder for folder in path.parents if folder != self.root)
        return fits(path.as_posix(), False) or any(fits(folder.as_posix(), True) for folder in folders)


# Folders that hold nothing a person of the project wrote.
_ALWAYS = Scope(
    tuple(
        ".bzr .direnv .eggs .git .hg .ipynb_checkpoints .mypy_cache .nox .npumigrate_cache .pytest_cache"
        " .ruff_cache .svn .tox .venv __pycache__ build dist node_modules site-packages venv".split()
    ),
    _EVERYWHERE,
)


class Options(NamedTuple):
    """What a lint run is asked to do for the files below one configuration file.

    ``root`` is the folder of that file, from which its relative paths count; ``origin`` its path, empty
    without one; ``extended`` are the files that it builds on; ``given`` the keys that the command line sets.
    """

    root: Path
    origin: str = ""
    extended: tuple[str, ...] = ()
    given: frozenset[str] = frozenset()
    version: str = ""  # empty: the newest one that is known
    version_why: str = ""  # the requirement that asks for it, where nobody named one
    hw: str = ""  # empty: none in particular
    select: tuple[str, ...] = ("ALL",)
    ignore: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    per_file_ignores: tuple[Scope, ...] = ()
    rules: tuple[str, ...] = ()
    exclude: Scope = _ALWAYS
    extend_exclude: tuple[Scope, ...] = ()
    respect_gitignore: bool = True
    force_exclude: bool = False
    severity: Severity = "info"
    fail_on: Severity = "info"
    output_format: str = "short"
    fix: bool = False
    unsafe_fixes: bool = False
    fix_only: bool = False
    fixable: tuple[str, ...] = ("ALL",)
    unfixable: tuple[str, ...] = ()
    show_fixes: bool = False
    baseline: str = ""
    cache_dir: str = ""
    overrides: tuple[Scope, ...] = ()


def checked(key: str, value: Any, where: str, root: Path) -> Any:
    """The value of a key as ``Options`` holds it. Raises ConfigError."""
    kind, choices = KEYS[key].kind, KEYS[key].choices

    def expect(fits: bool, wanted: str) -> None:
        _expect(fits, value, key, wanted, where)

    if kind == "switch":
        expect(isinstance(value, bool), _("true or false"))
        return value
    if kind == "path":
        expect(isinstance(value, str) and value != "", _("a path"))
        return str(root / value)
    if kind == "text":
        # A version that was written as a number: 2.6; but 2.10 would be 2.1, so it is refused.
        expect(isinstance(value, str), _('a string in quotes, as in {key} = "2.6"', key=key))
        return value
    if kind == "choice":
        if value not in choices:
            same = [choice for choice in choices if choice.lower() == str(value).lower()]
            expect(False, " | ".join(choices) + did_you_mean(same[0] if same else value, choices))
        return value
    if kind == "ignores":
        expect(
            isinstance(value, dict) and all(map(_is_texts, value.values())),
            _("a table of globs with lists of codes"),
        )
        _usable([pattern[pattern.startswith("!") :] for pattern in value], root, key, where)
        return tuple(Scope((pattern,), root, tuple(codes)) for pattern, codes in value.items())
    if kind == "overrides":
        expect(isinstance(value, list) and all(isinstance(item, dict) for item in value), "tables")
        return tuple(_override(item, where, root) for item in value)
    expect(_is_texts(value), _("a list of strings"))
    if kind == "patterns":
        excluded = Scope(_usable(value, root, key, where), root)
        return excluded if key == "exclude" else (excluded,)
    return tuple(str(root / file) for file in value) if kind == "paths" else tuple(value)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _expect(fits: bool, value: Any, key: str, wanted: str, where: str) -> None:
    if not fits:
        raise ConfigError(
            "{key} is {value!r} and must be {wanted}", key=_place(key, where), value=value, wanted=wanted
        )


def _usable(patterns: Sequence[str], root: Path, key: str, where: str) -> tuple[str, ...]:
    try:
        path_matcher(tuple(patterns), root)
    except SourceError as error:
        raise ConfigError(f"{_place(key, where)}: {error}") from None
    return tuple(patterns)


def _place(key: str, where: str) -> str:
    return where if where == f"--{key}" else f"{where}: {key}"


def checked_table(
    values: Mapping[str, Any], where: str, root: Path, known: Mapping[str, Option] = KEYS
) -> dict[str, Any]:
    """The values of some keys as ``Options`` holds them. Raises ConfigError, also for keys not ``known``."""
    found = {}
    for key, value in values.items():
        if key not in known:
            hint = did_you_mean(key, known) or _("; known are {known}", known=", ".join(known))
            raise ConfigError("{where}: unknown key {key!r}{hint}", where=where, key=key, hint=hint)
        found[key] = checked(key, value, where, root)
    return found


def _override(item: dict[str, Any], where: str, root: Path) -> Scope:
    paths = item.get("paths")
    _expect(_is_texts(paths) and bool(paths), paths, "overrides.paths", _("a list of globs"), where)
    allowed = {key: spec for key, spec in KEYS.items() if "paths" in spec.set_by}
    rest = {key: value for key, value in item.items() if key != "paths"}
    values = checked_table(rest, f"{where}: overrides", root, allowed)
    return Scope(_usable(paths or (), root, "overrides.paths", where), root, values)


def with_values(options: Options, values: Mapping[str, Any]) -> Options:
    """The options with checked values put over them, by their keys in the configuration.

    A ``select`` begins anew; without it ``ignore`` and ``extend-select`` add to the choice that there is.
    What is called extend-… adds to what there is.
    """
    new = {key.replace("-", "_"): value for key, value in values.items()}
    ignored, wanted = new.get("ignore", ()), new.get("extend_select", ())
    more = new.pop("extend_per_file_ignores", ())
    own = new.get("per_file_ignores", options.per_file_ignores)
    new["per_file_ignores"] = tuple(dict.fromkeys((*own, *more)))
    new["extend_exclude"] = tuple(dict.fromkeys((*options.extend_exclude, *new.get("extend_exclude", ()))))
    if "select" in new:
        new.update(ignore=ignored, extend_select=wanted)
    elif ignored or wanted:
        new["select"] = _without(options.select, ignored)
        selected = *_without(options.extend_select, ignored), *wanted
        new["extend_select"] = tuple(dict.fromkeys(selected))
        new["ignore"] = tuple(dict.fromkeys((*_without(options.ignore, wanted), *ignored)))
    return options._replace(**new)


def _without(codes: tuple[str, ...], gone: tuple[str, ...]) -> tuple[str, ...]:
    """The codes, or beginnings of codes, that do not start with one of ``gone``."""
    gone = tuple("" if code == "ALL" else code for code in gone)
    return tuple(code for code in codes if not ("" if code == "ALL" else code).startswith(gone))


def for_file(options: Options, path: Path, command_line: Mapping[str, Any]) -> Options:
    """The options for one file: the overrides for its path, and above them the command line."""
    fitting = [item for item in options.overrides if item.fits(path)]
    if not fitting:
        return options
    for item in fitting:
        options = with_values(options, item.values)
    return with_values(options, command_line)


def ignored_codes(options: Options, path: Path) -> tuple[str, ...]:
    """The codes, or beginnings of codes, that per-file-ignores has for a file."""
    codes: set[str] = set()
    for item in options.per_file_ignores:
        negated = item.patterns[0].startswith("!")
        if item._replace(patterns=(item.patterns[0][negated:],)).fits(path) != negated:
            codes.update(item.values)
    return ("",) if "ALL" in codes else tuple(sorted(codes))  # every code begins so


@cache
def path_matcher(patterns: tuple[str, ...], root: Path) -> Callable[[str, bool], bool]:
    """A function of an absolute path (with ``/``) and whether it is a folder: do patterns of ``root`` fit?

    A pattern may also be an absolute path there. Raises SourceError for one that cannot be read.
    """
    prefix = "" if root == _EVERYWHERE else root.as_posix().rstrip("/") + "/"
    own = [f"/{text[len(prefix) :]}" if prefix and text.startswith(prefix) else text for text in patterns]
    fits = matcher(own)
    return lambda path, folder: path.startswith(prefix) and fits(path[len(prefix) :], folder)


def torch_version(options: Options) -> str:
    """The torch version that is meant, in the spelling of the API database. Raises UnknownVersion."""
    from migrator.api_support import versions

    return (versions.resolve(options.version) if options.version else versions.newest()).text


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
    mentioned = {code for item in options.per_file_ignores for code in item.values}
    mentioned.update(code for code in (*options.fixable, *options.unfixable) if code != "ALL")
    settings = Settings(
        version=torch_version(options),
        select=tuple(dict.fromkeys((*options.select, *options.extend_select))),
        ignore=options.ignore,
        rule_files=options.rules,
        hardware=options.hw,
        content=digest(*map(read_named, options.rules)).hex() if options.rules else "",
    )
    return RuleSet(settings, tuple(sorted(mentioned)), noqa)


def read_named(file: str | Path, *largest: int) -> bytes:
    """What is in a file that a person names, as ``read_settings`` reads it. Raises ConfigError."""
    try:
        return read_settings(file, *largest)
    except Unreadable as error:
        raise ConfigError(f"{shown(file)}: {error}") from None


# What says which rules there are, and which of them count.
_CHOOSING = frozenset(
    name for name, option in KEYS.items() if option.kind in ("codes", "ignores") or name == "rules"
)


def with_origin(options: Options, error: Exception) -> str:
    """What is wrong with the version or the rules, and the file that says so if the command line does not."""
    from migrator.api_support.versions import UnknownVersion

    deciding = frozenset({"version"}) if isinstance(error, UnknownVersion) else _CHOOSING
    blamed = options.origin if not options.given & deciding else ""
    return f"{shown(blamed)}: {error}" if blamed else str(error)


def counting(found: Iterable[Finding], options: Options) -> list[Finding]:
    """The findings that are grave enough, those of rules that are not to be fixed without their fixes."""
    return [
        item if may_be_fixed(item, options) else item._replace(fix=None)
        for item in found
        if severity_at_least(item.severity, options.severity)
    ]


def may_be_fixed(item: Finding, options: Options) -> bool:
    """Whether the fixes of a finding's rule are to be made, if it has any."""
    if options.fixable == ("ALL",) and not options.unfixable:
        return True
    return longest_beginning(options.fixable, item.code) > longest_beginning(options.unfixable, item.code)


def severity_at_least(severity: Severity, threshold: Severity) -> bool:
    """Whether a severity reaches a threshold."""
    return SEVERITIES.index(severity) >= SEVERITIES.index(threshold)
