"""``npumigrate mcp``: what npumigrate knows, for agents."""

from __future__ import annotations

import os
from pathlib import Path

from migrator.cli.ending import check_folder, stop
from migrator.cli.options import Given
from migrator.language import english_for_programs
from migrator.this_copy import install_command


def mcp(given: Given) -> None:
    """Start a Model Context Protocol server for agents: APIs, lint, rules, migration diffs.

    It uses standard input and output, and changes no files.

    Exit status: 0 ended by the client; 2 usage error, or the package mcp is not installed.
    """
    folder = Path(os.path.realpath(given.workspace or Path.cwd()))
    check_folder(given.workspace or folder)
    if given.workspace is None and folder == Path(folder.anchor):
        stop("the current folder is the root of this machine: give the workspace: npumigrate mcp FOLDER")
    packs = [os.path.abspath(file) for file in given.rules or ()]
    try:
        import mcp.server  # noqa: F401
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("mcp"):
            raise
        how = install_command("mcp")
        stop("the server needs the package mcp, on Python 3.10 or newer: {command}", command=how)
    english_for_programs()  # what follows is for agents
    from migrator.mcp.tools import serve

    serve(folder, given.timeout, packs, given.allow_verify)
