"""``npumigrate lint``: what a migration would change or report, for CI, hooks and editors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from migrator.cli.ending import stop
from migrator.cli.own_parser import Parser
from migrator.cli.progress import ProgressBar
from migrator.command_options import Option, split
from migrator.language import N_
from migrator.lint.options import OPTIONS

if TYPE_CHECKING:
    from migrator.lint.files import CommandLine

ABOUT = """Find what keeps a project from running on Ascend NPUs.

Findings are what a migration would change or report. The nearest npumigrate.toml,
or [tool.npumigrate] in pyproject.toml, configures each file.

Exit status: 0 no findings; 1 findings; 2 usage error or unreadable files;
130 interrupted.
"""
_PATHS = Option(
    (), "paths", "", "PATHS…", N_("Files and folders (default: the current one), or - for stdin.")
)


def parser() -> Parser:
    """What reads the arguments of ``npumigrate lint``."""
    return Parser("lint", ABOUT, (_PATHS, *OPTIONS))


def lint(arguments: Sequence[str]) -> int:
    """Run ``npumigrate lint`` with its arguments and give its exit code."""
    line = command_line(arguments)
    with ProgressBar(shown=not (line.quiet or line.silent)) as bar:
        from migrator.lint.run import lint_and_watch, lint_once

        return (lint_and_watch if line.watch else lint_once)(line, bar)


def command_line(arguments: Sequence[str]) -> CommandLine:
    """What the arguments say, checked. Raises UserError."""
    from migrator.lint.files import CommandLine

    line = parser().parse_args(list(arguments), CommandLine())
    # A variable of a script that is not set is no current folder, and no wish for the default.
    if "" in line.paths:
        stop("a path is empty")
    line.paths = tuple(line.paths or ["-" if line.stdin_filename else "."])
    line.given = {}
    for option in OPTIONS:
        value = getattr(line, option.name.replace("-", "_"), None)
        if value == "" or (isinstance(value, list) and "" in value):
            stop("--{value} is empty", value=option.name)
        if value is not None and option.key:
            line.given[option.name] = _as_configured(option, value)
    return line


def _as_configured(option: Option, value: Any) -> Any:
    """The value of an option as a configuration has it."""
    if not option.repeated or option.kind == "paths":
        return value
    parts = list(split(value))
    if option.kind == "codes" and not parts:
        stop("--{name}: no such rule", name=option.name)
    if option.kind != "ignores":
        return parts
    globs: dict[str, list[str]] = {}  # of --per-file-ignores tests/*:NPU1,docs/*:ALL
    glob = ""
    for part in parts:
        before, colon, code = part.rpartition(":")
        glob = before if colon else glob
        if not glob or not code:
            said = N_("--{name} {part}: must be GLOB:RULES, as in tests/*:NPU101")
            stop(said, name=option.name, part=part)
        globs.setdefault(glob, []).append(code)
    return globs
