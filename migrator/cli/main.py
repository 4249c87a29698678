"""The command line's frame: which command is meant, and what a person sees of an error.

Nothing heavy is imported here: ``npumigrate --help`` answers at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Callable, Optional

import typer

from migrator import __version__
from migrator.cli.ending import DONE, WRONG_USE, ended, escape_unprintable, stop
from migrator.cli.options import Given, described
from migrator.command_options import options_of

# What the list of all commands says of those that read their options themselves.
_OWN_PARSER = {
    "lint": "Find what keeps a project from running on Ascend NPUs: for CI, hooks and editors.",
    "check": "Another name for lint.",
    "upgrade": "Find, and with --fix write, what another torch_npu needs in code for NPUs.",
    "api": "Show whether a torch API, torch.cuda name or environment variable works on NPUs.",
}
# Each command, in the order of the help; it is migrator.cli.NAME.NAME. Only the one that is asked for is
# imported and gets a parser: making one of each takes longer than most commands.
COMMANDS = (
    *(
        "migrate",
        "analyze",
        "lint",
        "check",
        "upgrade",
        "verify",
        "emulate",
        "record",
        "compare",
        "profile",
        "report",
    ),
    *("launch", "doctor", "explain", "fleet", "api", "rule", "db", "server", "mcp", "completion", "version"),
)
_FRAME_OPTIONS = ("-h", "--help", "-V")
# By themselves these can do nothing: they show their help.
_HELP_ALONE = (
    "migrate",
    "analyze",
    "verify",
    "record",
    "compare",
    "profile",
    "report",
    "launch",
    "fleet",
    "rule",
    "db",
    "completion",
)


def frame(given: Given) -> None:
    """Migrate PyTorch projects from CUDA and NCCL to Ascend NPUs (torch_npu and HCCL).

    Without a command it migrates: npumigrate SRC -o OUT -v 2.6
    """
    if given.show_version:
        version(given)
        raise typer.Exit(DONE)


def version(_given: Given) -> None:
    """Show the version."""
    typer.echo(f"npumigrate {__version__}")


def parser(name: str) -> typer.Typer:
    """The parser for a line that starts with ``name``: that command's, or a list of all commands."""
    app = typer.Typer(
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    if name not in COMMANDS or name in _OWN_PARSER:
        app.callback(invoke_without_command=True)(described("npumigrate")(frame))
        for each in COMMANDS:
            app.command(each)(_listed(each))
        return app
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


def _listed(name: str) -> Callable[[], None]:
    """What stands for a command in the list of all: its name and its help."""

    def stub() -> None:
        """Never called: a line that starts with a command gets the command's own parser."""

    if name in _OWN_PARSER:
        stub.__doc__ = _OWN_PARSER[name]
    else:
        command = _command(name)
        stub.__doc__ = command.info.help if isinstance(command, typer.Typer) else command.__doc__
    return stub


def run(arguments: Optional[Sequence[str]] = None) -> int:
    """Run one command line, ``sys.argv`` without one, and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given == ["--version"]:  # with a value it is torch's, of a migration
        given = ["-V"]
    alone = not given or (len(given) == 1 and given[0] in _HELP_ALONE)
    if alone:
        given.append("--help")
    elif given[0] not in (*COMMANDS, *_FRAME_OPTIONS) and (
        given[0].startswith("-") or os.path.exists(given[0])
    ):
        given.insert(0, "migrate")
    escape_unprintable()
    return ended(lambda: (_run_app(given) or WRONG_USE) if alone else _run(given))


def _run(given: list[str]) -> int:
    if given[0] in _OWN_PARSER:
        from migrator.cli.start import run_own

        return run_own(*given)
    if given in (["-h"], ["--help"]):
        _run_app(given)
        typer.echo()
        given = ["migrate", "--help"]  # what most people look for
    if given[0] == "migrate":
        from migrator.cli.migrate import translated

        given = translated(given)
    return _run_app(given)


def _with_help(command: Any, name: str = "") -> Any:
    """A command of typer's; its help, and that of those below it, is ours."""
    below = getattr(command, "commands", {})

    def shown(_context: object) -> str:
        from migrator.cli.help import page

        about = {each: under.help or "" for each, under in below.items()}
        return page(name, command.help or "", options_of(name or "npumigrate"), about)

    command.get_help = shown
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
        from migrator.cli.spoken import usage_error  # typer's own: an unknown option, a bad value

        stop("{what} (npumigrate --help shows all options)", what=usage_error(error))
