"""The options of typer's commands, from their table, and what several commands make of them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from inspect import Parameter, Signature
from math import nan
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Callable

import typer

from migrator.cli.ending import say, stop
from migrator.command_options import Option, options_of, split
from migrator.language import N_, _

if TYPE_CHECKING:
    from migrator.core.settings import Settings


class Given(SimpleNamespace):
    """What was given to a command: the values of its options, by their names in the table."""


def described(command: str) -> Callable[[Callable[[Given], None]], Callable[..., None]]:
    """Make of a function of what was given one with parameters that typer reads: those of a command.

    ``reports/options.json`` has them. The ``context`` is typer's.
    """

    def decorate(function: Callable[[Given], None]) -> Callable[..., None]:
        rows = options_of(command)

        def called(**given: Any) -> None:
            function(Given(**given | {row.name: _checked(row, given[row.name]) for row in rows}))

        kinds = {row.name: _TYPES.get(row.kind, str) for row in rows}
        parameters = [Parameter(row.name, _KEYWORD, default=_parameter(row)) for row in rows]
        called.__name__, called.__doc__ = function.__name__, function.__doc__
        called.__annotations__ = {"context": typer.Context, **kinds}
        called.__signature__ = Signature(  # type: ignore[attr-defined]
            [Parameter("context", _KEYWORD), *parameters]
        )
        return called

    return decorate


_KEYWORD = Parameter.KEYWORD_ONLY
_TYPES: dict[str, Any] = {"flag": bool, "path": Path, "paths": list[Path], "texts": list[str]}


def _parameter(option: Option) -> Any:
    default = bool(option.default) if option.kind == "flag" else option.default
    default = ... if option.required else default
    if option.spelled:
        return typer.Option(default, *option.spelled.split())
    return typer.Argument(default, metavar=option.metavar or None)


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


def source_of(given: Given, words: Sequence[str], command: str, writes: bool = True) -> str:
    """The input of a command that ``writes`` a result: it may be said as a word or with ``--input``.

    Stops where it is given twice, where it or the output is missing, and at --quiet with --verbose.
    """
    inputs = [*words, *([given.source] if given.source is not None else [])]
    if len(inputs) > 1:
        stop("more than one input: {said}", said=", ".join(inputs))
    needed = {"-o/--output": given.output or not writes, "SRC (-i/--input)": any(inputs)}
    missing = [option for option, there in needed.items() if not there]
    if missing:
        said = N_("missing: {missing} ({command} --help shows all options)")
        stop(said, missing=", ".join(missing), command=command)
    refuse_together({"--quiet": given.quiet, "--verbose": given.verbose}, ("--quiet", "--verbose"))
    return str(inputs[0])


def refuse_together(given: Mapping[str, Any], *pairs: tuple[str, str]) -> None:
    """Stop where both options of a pair were given."""
    for one, other in pairs:
        if given[one] and given[other]:
            stop("{chosen} and {chosen2} cannot be used together", chosen=one, chosen2=other)


def settings_of(given: Given, source: str, **more: Any) -> Settings:
    """The settings of a run, with ``more`` than several commands have.

    The torch version is the one that the user names, or else the one that the project's requirements ask for;
    prints which one and why, and the rules of pytorch_gpu2npu.sh's files that have no equivalent.
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
            say(_("Target: torch {version} ({why}). Override with -v", version=version, why=why))
    packs = tuple(given.rules or ())
    for file in packs:
        if file.endswith(".json"):
            from migrator.matchers.vendor_rules import not_converted

            for line in not_converted(Path(file)):
                say(_("{file} ignored: {line}", file=file, line=line))
    return Settings(
        version, ignore=split(given.ignore), rule_files=packs, hardware=given.hardware or "", **more
    )
