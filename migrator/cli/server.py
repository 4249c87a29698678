"""``npumigrate server``: the findings of lint in an editor."""

from __future__ import annotations

import typer

from migrator.cli.ending import stop
from migrator.cli.options import Given


def server(_given: Given) -> None:
    """Start the language server for editors: live findings, fixes, API support.

    Exit status: 0 ended by the editor; 1 the editor is gone; 2 pygls is not installed.
    """
    try:
        from migrator.server.session import serve
    except ModuleNotFoundError as error:
        if error.name not in ("pygls", "lsprotocol"):
            raise
        from migrator.this_copy import install_command

        stop("the server needs pygls: {command}", command=install_command("server"))
    raise typer.Exit(serve())
