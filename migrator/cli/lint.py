"""``npumigrate lint``: what a migration would change or report, for CI, hooks and editors."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from migrator.cli.own_parser import Parser, UsageError
from migrator.cli.progress import ProgressBar
from migrator.command_options import Option, split
from migrator.language import N_, _
from migrator.lint.options import OPTIONS

if TYPE_CHECKING:
    from migrator.lint.run import CommandLine

_DESCRIPTION = N_("""\
Find what keeps a project from running on Ascend NPUs.

The findings are what a migration would change or report. Settings are read from
npumigrate.toml, or [tool.npumigrate] in pyproject.toml: the nearest to each file.
""")
_EXIT_STATUS = N_("""\
Exit status: 0 no findings; 1 findings; 2 usage error, or files that could not be
looked at; 130 interrupted.
""")


def parser() -> Parser:
    """What reads the arguments of ``npumigrate lint``."""
    parser = Parser("lint", "[options] [PATHS ...]", _DESCRIPTION, _EXIT_STATUS)
    paths = _("files and folders (default: the current one), or - for stdin")
    parser.add_argument("paths", nargs="*", metavar="PATHS", help=paths)
    parser.add_options(OPTIONS)
    return parser


def lint(arguments: Sequence[str]) -> int:
    """Run ``npumigrate lint`` with its arguments and give its exit code."""
    line = _command_line(parser().parse_args(list(arguments)))
    with ProgressBar(shown=not (line.quiet or line.silent)) as bar:
        if line.watch:
            from migrator.lint.watching import lint_and_watch

            return lint_and_watch(line, bar)
        from migrator.lint.run import lint_once

        return lint_once(line, bar)


def _command_line(given: argparse.Namespace) -> CommandLine:
    from migrator.lint.run import CommandLine

    # A variable of a script that is not set is no current folder, and no wish for the default.
    if "" in given.paths:
        raise UsageError("a path is empty")
    for name, value in vars(given).items():
        if value == "" or (isinstance(value, list) and "" in value):
            raise UsageError("--{value} is empty", value=name.replace("_", "-"))
    values: dict[str, Any] = {}
    keys: dict[str, Any] = {}
    for option in OPTIONS:
        value = _value(option, getattr(given, option.name.replace("-", "_"), None))
        if value is not None and option.key:
            keys[option.name] = value
        elif value is not None:
            values[option.name.replace("-", "_")] = value
    paths = tuple(given.paths or ["-" if given.stdin_filename else "."])
    return CommandLine(paths, keys, **values)


def _value(option: Option, value: Any) -> Any:
    """The value of an option as a configuration has it, or None where the command line says nothing."""
    if value is None or not option.repeated or option.kind == "paths":
        return value
    parts = list(split(value))
    if option.kind == "ignores":
        return _by_glob(option, parts)
    if option.kind == "codes" and not parts:
        raise UsageError("--{name} names no rule", name=option.name)
    return parts


def _by_glob(option: Option, parts: Sequence[str]) -> dict[str, list[str]]:
    """``--per-file-ignores tests/*:NPU1,docs/*:ALL`` as the configuration has it."""
    globs: dict[str, list[str]] = {}
    glob = ""
    for part in parts:
        before, colon, code = part.rpartition(":")
        if colon:
            glob = before
        if not glob or not code:
            raise UsageError(
                "--{name} {part}: must be GLOB:RULES, as in tests/*:NPU101", name=option.name, part=part
            )
        globs.setdefault(glob, []).append(code)
    return globs
