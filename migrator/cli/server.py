"""``npumigrate server``: the findings of lint in an editor."""

from __future__ import annotations

import typer

_WRONG_USE = 2


def server(
    stdio: bool = typer.Option(True, "--stdio", help="Talk over the standard streams, as it always does."),
) -> None:
    """Start the language server, for editors: findings as you type, fixes, support of APIs.

    Exit status: 0 the editor ended it; 1 the editor was gone; 2 pygls is not installed.
    """
    try:
        from migrator.server.serve import serve
    except ModuleNotFoundError as error:
        if error.name not in ("pygls", "lsprotocol"):
            raise
        line = "the server needs pygls: pip install 'npumigrate[server]'"
        typer.echo(f"npumigrate: {line}", err=True)
        raise typer.Exit(_WRONG_USE) from None
    raise typer.Exit(serve())
