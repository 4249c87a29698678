"""The language server: which message is answered by what."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any, Callable

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from migrator import __version__
from migrator.server.editor import FIX_ALL
from migrator.server.session import Session

_DONE = 0
_GONE = 1
_ACTIONS = types.CodeActionOptions([types.CodeActionKind.QuickFix, FIX_ALL], resolve_provider=True)
# Notebooks of any kind: what is linted are their Python cells.
_NOTEBOOKS = types.NotebookDocumentSyncOptions(
    [types.NotebookDocumentFilterWithCells([types.NotebookCellLanguage("python")])], save=True
)


def build() -> tuple[LanguageServer, Session]:
    """The server, with all that it can do, and its state."""
    server = LanguageServer("npumigrate", __version__, notebook_document_sync=_NOTEBOOKS, max_workers=2)
    session = Session(server)
    answers: dict[str, Callable[[Any], Any]] = {
        types.INITIALIZE: session.start,
        types.INITIALIZED: session.started,
        types.TEXT_DOCUMENT_DID_OPEN: session.open,
        types.TEXT_DOCUMENT_DID_CHANGE: session.change,
        types.TEXT_DOCUMENT_DID_SAVE: session.check_all,  # it may have been a configuration
        types.TEXT_DOCUMENT_DID_CLOSE: lambda params: session.close(params.text_document.uri),
        types.NOTEBOOK_DOCUMENT_DID_OPEN: session.open_notebook,
        types.NOTEBOOK_DOCUMENT_DID_CHANGE: session.change_notebook,
        types.NOTEBOOK_DOCUMENT_DID_SAVE: session.check_all,
        types.NOTEBOOK_DOCUMENT_DID_CLOSE: lambda params: session.close(params.notebook_document.uri),
        types.WORKSPACE_DID_CHANGE_WATCHED_FILES: session.files_changed,
        types.WORKSPACE_DID_CHANGE_CONFIGURATION: session.change_settings,
        types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS: session.change_folders,
        types.TEXT_DOCUMENT_HOVER: session.hover,
        types.TEXT_DOCUMENT_CODE_ACTION: session.actions,
        types.CODE_ACTION_RESOLVE: session.resolve,
        types.SHUTDOWN: session.end,
    }
    for message, answer in answers.items():
        options = _ACTIONS if message == types.TEXT_DOCUMENT_CODE_ACTION else None
        server.feature(message, options)(partial(answer))  # pygls marks it, which a method does not allow
    # What an extension asks for; its own commands have other names.
    server.command("npumigrate.server.migrated")(partial(session.migrated))
    server.command("npumigrate.server.explained")(partial(session.explained))
    return server, session


def serve() -> int:
    """Serve one editor over the standard streams; gives 0 where it said goodbye, 1 where it is gone."""
    server, session = build()
    out, sys.stdout = sys.stdout, sys.stderr  # what is printed by accident must not reach the editor
    try:
        server.start_io(sys.stdin.buffer, out.buffer)
    finally:
        session.stop()
    return _DONE if session.stopped else _GONE
