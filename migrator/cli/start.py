"""Where the process starts: linting goes its own, short way; everything else is typer's."""

from __future__ import annotations

import sys


def run() -> int:
    """Run the command line of this process and return its exit code."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["lint"]:
        from migrator.cli.ending import escape_unprintable
        from migrator.cli.lint import lint

        escape_unprintable()
        try:
            return lint(arguments[1:])
        except Exception as error:
            from migrator.cli.main import internal_error

            return internal_error(error)
    from migrator.cli.main import run as run_command

    return run_command(arguments)
