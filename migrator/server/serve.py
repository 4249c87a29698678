"""The language server: which message is answered by what."""

from __future__ import annotations

import sys
from typing import Optional

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from migrator import __version__
from migrator.server.messages import FIX_ALL
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

    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        session.start(params)

    @server.feature(types.INITIALIZED)
    def initialized(_: types.InitializedParams) -> None:
        session.started()

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def did_open(params: types.DidOpenTextDocumentParams) -> None:
        session.open(params.text_document)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def did_change(params: types.DidChangeTextDocumentParams) -> None:
        session.change(params)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def did_save(_: types.DidSaveTextDocumentParams) -> None:
        session.check_all()  # it may have been a configuration

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def did_close(params: types.DidCloseTextDocumentParams) -> None:
        session.close(params.text_document.uri)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    def did_open_notebook(params: types.DidOpenNotebookDocumentParams) -> None:
        session.open_notebook(params)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def did_change_notebook(params: types.DidChangeNotebookDocumentParams) -> None:
        session.change_notebook(params)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_SAVE)
    def did_save_notebook(_: types.DidSaveNotebookDocumentParams) -> None:
        session.check_all()

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def did_close_notebook(params: types.DidCloseNotebookDocumentParams) -> None:
        session.close(params.notebook_document.uri)

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def files_changed(params: types.DidChangeWatchedFilesParams) -> None:
        session.files_changed([change.uri for change in params.changes])

    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    def settings_changed(params: types.DidChangeConfigurationParams) -> None:
        session.change_settings(params.settings)

    @server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    def folders_changed(params: types.DidChangeWorkspaceFoldersParams) -> None:
        session.change_folders(params.event)

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(params: types.HoverParams) -> Optional[types.Hover]:
        return await session.hover(params)

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, _ACTIONS)
    async def code_action(params: types.CodeActionParams) -> list[types.CodeAction]:
        return await session.actions(params)

    @server.feature(types.CODE_ACTION_RESOLVE)
    async def resolve(action: types.CodeAction) -> types.CodeAction:
        return await session.resolve(action)

    @server.feature(types.SHUTDOWN)
    def shutdown(_: None = None) -> None:
        session.stopped = True
        session.stop()

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
