"""The command line's frame: which command is meant, and what a person sees of an error.

Nothing heavy is imported here: ``npumigrate --help`` answers at once.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Optional

import typer

from migrator.cli.ending import DONE, WRONG_USE, ended, escape_unprintable, stop
from migrator.cli.options import Given, described
from migrator.command_options import options_of
from migrator.language import N_, _, did_you_mean

# What the list of all commands says of those that read their options themselves.
OWN_PARSER = {
    "lint": "Find what keeps a project from running on Ascend NPUs: for CI, hooks and editors.",
    "check": "Another name for lint.",
    "upgrade": "Find, and with --fix write, what another torch_npu needs in code for NPUs.",
    "api": "Show whether a torch API, torch.cuda name or environment variable works on NPUs.",
}
# Each command, in the order of the help; it is migrator.cli.NAME.NAME. Only the one that is asked for is
# imported and gets a parser: making one of each takes longer than most commands.
COMMANDS = (
    *("migrate", "analyze", "lint", "check", "upgrade", "verify", "emulate", "record", "compare", "profile"),
    *("report", "launch", "doctor", "explain", "fleet", "api", "rule", "db", "server", "mcp", "completion"),
    "version",
)
_HELP = ("-h", "--help")
ABOUT = """Migrate PyTorch projects from CUDA and NCCL to Ascend NPUs (torch_npu and HCCL).

Without a command it migrates: npumigrate SRC -o OUT -v 2.6
"""
# By themselves these can do nothing: they show their help.
_HELP_ALONE = (
    *("migrate", "analyze", "verify", "record", "compare", "profile", "report"),
    *("launch", "fleet", "rule", "db", "completion"),
)


def version(_given: Given) -> None:
    """Show the version."""
    from migrator.this_copy import version as known

    typer.echo(f"npumigrate {known()}")


def parser(name: str) -> typer.Typer:
    """The parser for a line that starts with the name of a command of typer's."""
    app = typer.Typer(
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": [*_HELP]},
    )
    # A help option that nobody can give would only be loaded with the rest of typer's machinery.
    app.callback(add_help_option=False)(lambda: None)
    command = _command(name)
    if isinstance(command, typer.Typer):
        app.add_typer(command, name=name)
    else:
        # What follows the first word of these is the program's.
        settings = {"allow_interspersed_args": False} if name in ("emulate", "record") else None
        app.command(name, context_settings=settings)(described(name)(command))
    return app


def _command(name: str) -> Any:
    """A command's function, or the typer.Typer of the commands below it."""
    return version if name == "version" else getattr(import_module(f"migrator.cli.{name}"), name)


def abouts() -> dict[str, str]:
    """What each command says of itself; those that read their options themselves in one line."""
    found = {name: _command(name) for name in COMMANDS if name not in OWN_PARSER}
    own = {
        n: str(each.info.help if isinstance(each, typer.Typer) else each.__doc__) for n, each in found.items()
    }
    return {name: OWN_PARSER.get(name) or own[name] for name in COMMANDS}


def run(arguments: Optional[Sequence[str]] = None) -> int:
    """Run one command line, ``sys.argv`` without one, and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["-V"] or given == ["--version"]:  # with a value it is torch's, of a migration
        given = ["version"]
    alone = not given or (len(given) == 1 and given[0] in _HELP_ALONE)
    if alone:
        given.append("--help")
    elif given[0] not in (*COMMANDS, *_HELP) and (given[0].startswith("-") or os.path.exists(given[0])):
        given.insert(0, "migrate")
    escape_unprintable()
    return ended(lambda: (_run(given, alone) or WRONG_USE) if alone else _run(given))


def _run(given: list[str], alone: bool = False) -> int:
    if given[0] in OWN_PARSER:
        from migrator.cli.start import run_own

        return run_own(*given)
    if given[0] in _HELP:
        typer.echo(_help("", ABOUT, abouts()))
        if alone:
            return DONE
        typer.echo()
        given = ["migrate", "--help"]  # what most people look for
    if given[0] not in COMMANDS:
        what = _("no such command: {what}", what=given[0]) + did_you_mean(given[0], COMMANDS)
        stop("{what} (npumigrate --help shows all options)", what=what)
    if given[0] == "migrate":
        from migrator.cli.migrate import translated

        given = translated(given)
    return _run_app(given)


def _help(name: str, about: str, below: Mapping[str, str]) -> str:
    from migrator.cli.help import page

    return page(name, about, options_of(name or "npumigrate"), below)


def _with_help(command: Any, name: str = "") -> Any:
    """A command of typer's; its help, and that of those below it, is ours."""
    below = getattr(command, "commands", {})
    about = {each: under.help or "" for each, under in below.items()}
    command.get_help = lambda _context: _help(name, command.help or "", about)
    for each, under in below.items():
        _with_help(under, f"{name} {each}".strip())
    return command


def _run_app(arguments: list[str]) -> int:
    app = _with_help(typer.main.get_command(parser(arguments[0])))
    try:
        return app(arguments, prog_name="npumigrate", standalone_mode=False) or DONE
    except typer.Abort:
        raise KeyboardInterrupt from None
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        stop("{what} (npumigrate --help shows all options)", what=_wrong(error))


def _wrong(error: Any) -> str:
    """What is wrong with a command line that typer refuses, as for an unknown option, in our words."""
    name, words = type(error).__name__, " ".join(error.format_message().split())
    if name == "NoSuchOption":
        meant = did_you_mean(error.option_name, error.possibilities or ())
        return _("no such option: {option}", option=error.option_name) + meant
    if name == "BadOptionUsage":
        said = N_("{option} needs a value") if "requires" in words else N_("{option} takes no value")
        return _(said, option=error.option_name)
    if name == "MissingParameter":
        return _("missing: {what}", what=error.param.metavar or "/".join(error.param.opts))
    if found := re.search(r"No such command '(.*?)'", words):
        known = getattr(error.ctx.command, "commands", ())
        return _("no such command: {what}", what=found[1]) + did_you_mean(found[1], known)
    if found := re.search(r"unexpected extra argument\S* \((.*)\)", words):
        return _("more than it takes: {what}", what=found[1])
    return words
