"""What is given to a command, by the table of options, and what several commands make of it."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from functools import partial
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional, TypeVar

from migrator.cli.ending import DONE, say, stop
from migrator.command_options import Option, options_of, split
from migrator.language import N_, MessageError, _, did_you_mean

if TYPE_CHECKING:
    from migrator.core.settings import Settings

Line = TypeVar("Line", bound=argparse.Namespace)
# What stands behind the first word of these is another program's.
_STARTERS = ("emulate", "record", "launch mpi")
_LAYOUT = partial(argparse.HelpFormatter, width=80)  # without one each option asks for the terminal's


class UsageError(MessageError):
    """A command line that cannot be understood; its text is the user's line."""


class Given(argparse.Namespace):
    """What was given to a command: the values of its options, by their names in the table."""


def given_to(command: str, words: Sequence[str], about: str, below: Mapping[str, str] = {}) -> Given:
    """What is given to a command behind its name; where that asks for help, its help is the end.

    ``reports/options.json`` has its options. The help says what it is ``about`` and what commands there are
    ``below`` it. Raises UsageError.
    """
    options = options_of(command)
    given = read(Given(), command, words, about, options, below)
    for option in options:
        value = getattr(given, option.name)
        if option.kind == "path" and value is not None:
            setattr(given, option.name, Path(value))
        elif option.kind == "paths":
            setattr(given, option.name, [Path(each) for each in value or ()])
    return given


def read(
    line: Line,
    command: str,
    words: Sequence[str],
    about: str,
    options: Sequence[Option],
    below: Mapping[str, str] = {},
) -> Line:
    """Put the values of options and arguments into ``line``, as texts and numbers; see ``given_to``."""
    reader = argparse.ArgumentParser(
        add_help=False, allow_abbrev=False, exit_on_error=False, formatter_class=_LAYOUT
    )
    reader.add_argument("-h", "--help", action="store_true")
    for option in options:
        if option.spelled:
            reader.add_argument(*option.spelled.split(), dest=_name(option), **_taking(option))
    end = words.index("--") if "--" in words and command not in _STARTERS else len(words)
    if command in _STARTERS:
        reader.add_argument("rest", nargs=argparse.REMAINDER)

    def wrong(what: str) -> UsageError:
        own = f"npumigrate {command}".rstrip()
        return UsageError("{what} ({command} --help shows all options)", what=what, command=own)

    try:
        _line, free = reader.parse_known_args(words[:end], line)
    except argparse.ArgumentError as error:
        said = N_("{option} takes no value") if "explicit" in error.message else N_("{option} needs a value")
        raise wrong(_(said, option=error.argument_name)) from None
    if line.help:
        from migrator.cli.help import page

        print(page(command, about, options, below), flush=True)
        raise SystemExit(DONE)
    for unknown in (word.partition("=")[0] for word in free if word[:1] == "-" != word):
        meant = did_you_mean(unknown, reader._option_string_actions if unknown[:2] == "--" else ())
        raise wrong(_("no such option: {option}", option=unknown) + meant)
    rest = getattr(line, "rest", [])
    free += rest[1:] if rest[:1] == ["--"] else [*rest, *words[end + 1 :]]
    for option in (each for each in options if not each.spelled and not each.key):
        several = option.kind in ("texts", "paths")
        own, free = (free, []) if several else (free[:1], free[1:])
        setattr(line, _name(option), own if several else next(iter(own), None))
    for option in options:
        if option.required and not getattr(line, _name(option)):
            what = "/".join(option.spelled.split()) or option.metavar or option.name
            raise wrong(_("missing: {what}", what=what))
        if not option.key:  # those of a configuration are looked at with it
            setattr(line, _name(option), _checked(option, getattr(line, _name(option))))
    if free:
        raise wrong(_("more than it takes: {what}", what=" ".join(free)))
    return line


def _name(option: Option) -> str:
    return option.name.replace("-", "_")


def _taking(option: Option) -> dict[str, Any]:
    """What argparse is told of an option's value."""
    if option.kind == "flag":
        return {"action": "store_true"}
    if option.kind == "switch":
        return {"action": argparse.BooleanOptionalAction}
    several = option.repeated or option.kind == "texts"
    return {"action": "append" if several else "store", "default": option.default}


def _checked(option: Option, value: Any) -> Any:
    """The value of an option, a number where it is one; stops at one that is none of its values."""
    name, least, most = option.spelled.replace(" ", "/"), option.least, option.most
    if option.choices and value not in (None, *option.choices):
        said = N_("{name}: choose from {choices}, not {value!r}")
        stop(said, name=name, choices=", ".join(option.choices), value=value)
    if value is None or option.kind not in ("number", "amount"):
        return value
    try:
        number = int(value) if option.kind == "number" else float(value)
    except ValueError:
        number = nan
    if not (number if least is None else least) <= number <= (most or number):
        limits = ("" if least is None else f" >= {least:g}") + (f", <= {most:g}" if most else "")
        stop("{name}: expected a number{limits}, not {value!r}", name=name, limits=limits, value=value)
    return number


def one_source(words: Sequence[str], given: Optional[str]) -> str:
    """The input, which may be said as a word or with ``--input``; stops where it is said twice."""
    said = [*words, *([given] if given is not None else [])]
    if len(said) > 1:
        stop("more than one input: {said}", said=", ".join(said))
    return said[0] if said else ""


def refuse_missing(needed: Mapping[str, Any], command: str) -> None:
    """Stop where one of the options that a command needs was not given."""
    missing = [option for option, value in sorted(needed.items()) if not value]
    if missing:
        said = N_("missing: {missing} ({command} --help shows all options)")
        stop(said, missing=", ".join(missing), command=command)


def refuse_together(given: Mapping[str, Any], *pairs: tuple[str, str]) -> None:
    """Stop where both options of a pair were given."""
    for one, other in pairs:
        if given[one] and given[other]:
            stop("{chosen} and {chosen2} cannot be used together", chosen=one, chosen2=other)


def settings_of(given: Given, source: str, **more: Any) -> Settings:
    """The settings of a run, with ``more`` than several commands have.

    The torch version is the one that the user names, or else the one that the project's requirements ask for;
    which one and why is told, and so are the rules of pytorch_gpu2npu.sh's files that have no equivalent.
    Raises UnknownVersion.
    """
    from migrator.api_support.versions import resolve
    from migrator.core.settings import Settings

    if given.version:
        version = resolve(given.version).text
    else:
        from migrator.project.wanted_versions import chosen_version

        version, why = chosen_version(Path(source))
        if not given.quiet and os.path.exists(source):
            say(_("torch {version}: {why}. Override with -v", version=version, why=why))
    packs = tuple(given.rules or ())
    for file in packs:
        if file.endswith(".json"):
            from migrator.matchers.vendor_rules import not_converted

            for line in not_converted(Path(file)):
                say(_("{file} ignored: {line}", file=file, line=line))
    return Settings(
        version, ignore=split(given.ignore), rule_files=packs, hardware=given.hardware or "", **more
    )
