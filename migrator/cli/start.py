"""Where the process starts: two commands go their own, short way; everything else is typer's."""

from __future__ import annotations

import sys


def run() -> int:
    """Run the command line of this process and return its exit code."""
    name, *arguments = sys.argv[1:] or [""]
    if name not in ("lint", "api"):
        from migrator.cli.main import run as run_command

        return run_command(sys.argv[1:])
    from migrator.cli.ending import escape_unprintable

    escape_unprintable()
    try:
        if name == "lint":
            from migrator.cli.lint import lint

            return lint(arguments)
        from migrator.cli.api import api

        return api(arguments)
    except Exception as error:
        from migrator.cli.main import internal_error

        return internal_error(error)
