"""The options of typer's commands, from their table, and what several commands make of them."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import wraps
from pathlib import Path
from typing import Any, Callable, Optional

import typer

from migrator.cli.ending import say, stop
from migrator.command_options import Option, options_of
from migrator.language import N_, _


def described(command: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Tell typer of the options of a command what ``reports/options.json`` has.

    The function's own parameters have their types and defaults.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        rows = {option.name: option for option in options_of(command)}
        signature = inspect.signature(function)
        parameters = [
            each.replace(default=_told(rows[each.name], each.default)) if each.name in rows else each
            for each in signature.parameters.values()
        ]

        @wraps(function)
        def told(**given: Any) -> None:
            function(**{name: getattr(each, "value", each) for name, each in given.items()})

        # typer knows choices as the values of an Enum; the function gets these as strings.
        kinds = {
            row.name: Enum(row.name, [(each, each) for each in row.choices], type=str)
            for row in rows.values()
            if row.choices
        }
        told.__annotations__ = {**function.__annotations__, **kinds}
        told.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return told

    return decorate


def _told(option: Option, default: Any) -> Any:
    default = ... if default is inspect.Parameter.empty else default
    about: dict[str, Any] = {"metavar": option.metavar or None, "min": option.least, "max": option.most}
    if option.spelled:
        return typer.Option(default, *option.spelled.split(), help=option.help, **about)
    return typer.Argument(default, help=option.help or None, hidden=not option.help, **about)


def one_source(words: Sequence[str], given: Optional[str]) -> Optional[str]:
    """The input, which may be said as a word or with ``--input``; stops where it is said twice."""
    said = [*words, *([given] if given is not None else [])]
    if len(said) > 1:
        stop("more than one input: {said}", said=", ".join(said))
    return said[0] if said else None


def refuse_missing(needed: Mapping[str, Any], command: str) -> None:
    """Stop where one of the options that a command needs was not given."""
    missing = [option for option, value in sorted(needed.items()) if not value]
    if missing:
        said = N_("missing: {missing} ({command} --help shows all options)")
        stop(said, missing=", ".join(missing), command=command)


def torch_version(given: Optional[str], source: Optional[str], quiet: bool) -> str:
    """The known torch version that the user names, or else the one that the project's requirements ask for.

    Which one, and why, is told. Raises UnknownVersion.
    """
    from migrator.api_support.versions import resolve

    if given:
        return resolve(given).text
    from migrator.project.wanted_versions import chosen_version

    choice = chosen_version(Path(source or ""))
    if not quiet and os.path.exists(source or ""):
        say(_("torch {version}: {why} (-v VERSION names another)", version=choice.version, why=choice.why))
    return choice.version


def check_common(quiet: bool, verbose: bool, hardware: Optional[str]) -> None:
    """Stop where there is no such product line, or where what is printed is said twice."""
    from migrator.api_support.verdict_type import HARDWARE

    if quiet and verbose:
        stop("--quiet and --verbose exclude each other")
    if hardware is not None and hardware not in HARDWARE:
        said = N_("there is no hardware {hardware!r}: choose one of {hardware2}")
        stop(said, hardware=hardware, hardware2=", ".join(HARDWARE))


def say_what_is_not_used(rule_files: Sequence[str]) -> None:
    """Name the rules of pytorch_gpu2npu.sh's files that have no equivalent, a line for each."""
    if not any(file.endswith(".json") for file in rule_files):
        return
    from migrator.matchers.vendor_rules import not_converted

    for file in rule_files:
        for line in not_converted(Path(file)):
            say(_("{file}: not used: {line}", file=file, line=line))
