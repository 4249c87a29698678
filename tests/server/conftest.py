"""An editor: a client of pygls that talks to the real command over its standard streams."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any, Callable

import pytest
from lsprotocol import types
from pygls.lsp.client import LanguageClient

from tests.warm import warm

_PATIENCE = 600  # seconds: a hang, not a slow machine


class Editor:
    """What a person does in an editor. ``said`` holds the messages that were shown."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.said: list[str] = []
        self.registered: list[types.Registration] = []
        self.refreshed = 0
        self._texts: dict[str, str] = {}
        self._versions: dict[str, int] = {}
        self._published: dict[str, types.PublishDiagnosticsParams] = {}
        self._loop = asyncio.new_event_loop()
        self._client = LanguageClient("editor", "1")
        client = self._client

        @client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def publish(params: types.PublishDiagnosticsParams) -> None:
            self._published[params.uri] = params

        @client.feature(types.WINDOW_SHOW_MESSAGE)
        def show(params: types.ShowMessageParams) -> None:
            self.said.append(params.message)

        @client.feature(types.WINDOW_LOG_MESSAGE)
        def log(params: types.LogMessageParams) -> None:
            self.said.append(params.message)

        @client.feature(types.CLIENT_REGISTER_CAPABILITY)
        def register(params: types.RegistrationParams) -> None:
            self.registered += params.registrations

        @client.feature(types.WORKSPACE_DIAGNOSTIC_REFRESH)
        def refresh(_params: None) -> None:
            self.refreshed += 1

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self._loop.run_until_complete(asyncio.wait_for(work, _PATIENCE))

    def start(
        self,
        options: Any = None,
        encodings: list[types.PositionEncodingKind] | None = None,
        resolve: bool = True,
        folders: bool = True,
        pulls: bool = False,
    ) -> types.InitializeResult:
        command = (sys.executable, "-m", "migrator", "server", "--stdio")
        self.run(self._client.start_io(*command, env=warm(os.environ, "editor")))
        support = types.ClientCodeActionResolveOptions(["edit"]) if resolve else None
        capabilities = types.ClientCapabilities(
            general=types.GeneralClientCapabilities(position_encodings=encodings),
            text_document=types.TextDocumentClientCapabilities(
                code_action=types.CodeActionClientCapabilities(resolve_support=support),
                diagnostic=types.DiagnosticClientCapabilities() if pulls else None,
            ),
            workspace=types.WorkspaceClientCapabilities(
                workspace_edit=types.WorkspaceEditClientCapabilities(document_changes=resolve),
                did_change_watched_files=types.DidChangeWatchedFilesClientCapabilities(True),
                diagnostics=types.DiagnosticWorkspaceClientCapabilities(True) if pulls else None,
            ),
        )
        home = [types.WorkspaceFolder(self.folder.as_uri(), "home")] if folders else None
        given = types.InitializeParams(
            capabilities=capabilities, workspace_folders=home, initialization_options=options
        )
        result = self.run(self._client.initialize_async(given))
        self._client.initialized(types.InitializedParams())
        return result

    def open(self, name: str, text: str) -> list[types.Diagnostic]:
        """Open a file that need not be on the disk; gives its findings."""
        self.open_only(name, text)
        return self.found(name)

    def open_only(self, name: str, text: str) -> None:
        """Open a file, for torch 2.6 where the server was not started yet."""
        if self.process is None:
            self.start({"version": "2.6"})
        uri = self.uri(name)
        self._texts[uri], self._versions[uri] = text, 1
        item = types.TextDocumentItem(uri, types.LanguageKind.Python, 1, text)
        self._client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    def pull(self, name: str) -> list[types.Diagnostic]:
        """The findings of an open file, asked for."""
        params = types.DocumentDiagnosticParams(types.TextDocumentIdentifier(self.uri(name)))
        return list(self.run(self._client.text_document_diagnostic_async(params)).items)

    def change(self, name: str, text: str, span: types.Range | None = None) -> list[types.Diagnostic]:
        """Replace a range, or all, of the text; gives the findings then."""
        self.type(name, text, span)
        return self.found(name)

    def type(self, name: str, text: str, span: types.Range | None = None) -> None:
        uri = self.uri(name)
        self._versions[uri] += 1
        if span is None:
            change: Any = types.TextDocumentContentChangeWholeDocument(text)
            self._texts[uri] = text
        else:
            change = types.TextDocumentContentChangePartial(span, text)
        name_of = types.VersionedTextDocumentIdentifier(self._versions[uri], uri)
        self._client.text_document_did_change(types.DidChangeTextDocumentParams(name_of, [change]))

    def close(self, name: str) -> None:
        name_of = types.TextDocumentIdentifier(self.uri(name))
        self._client.text_document_did_close(types.DidCloseTextDocumentParams(name_of))

    def open_notebook(self, name: str, cells: list[tuple[str, str]]) -> None:
        """Open a notebook with cells of some languages and texts; they are called ``NAME#0`` and so on."""
        items = [self._cell(f"{name}#{number}", *cell) for number, cell in enumerate(cells)]
        notebook = types.NotebookDocument(
            self.uri(name), "jupyter-notebook", 1, [_notebook_cell(item) for item in items]
        )
        self._client.notebook_document_did_open(types.DidOpenNotebookDocumentParams(notebook, items))

    def _cell(self, name: str, language: str, text: str) -> types.TextDocumentItem:
        uri = self.uri(name)
        self._texts[uri], self._versions[uri] = text, 1
        return types.TextDocumentItem(uri, language, 1, text)

    def change_notebook(self, name: str, changes: types.NotebookDocumentCellChanges) -> None:
        named = types.VersionedNotebookDocumentIdentifier(version=2, uri=self.uri(name))
        event = types.NotebookDocumentChangeEvent(cells=changes)
        self._client.notebook_document_did_change(types.DidChangeNotebookDocumentParams(named, event))

    def type_in_cell(self, name: str, text: str, span: types.Range) -> None:
        uri = self.uri(name)
        self._versions[uri] += 1
        document = types.VersionedTextDocumentIdentifier(self._versions[uri], uri)
        change = types.TextDocumentContentChangePartial(span, text)
        content = types.NotebookDocumentCellContentChanges(document, [change])
        notebook = name.partition("#")[0]
        self.change_notebook(notebook, types.NotebookDocumentCellChanges(text_content=[content]))

    def replace_cells(
        self, name: str, start: int, gone: list[str], new: list[tuple[str, str, str]] | None = None
    ) -> None:
        """Take cells out of a notebook, and put in ``new`` ones: name, language and text."""
        items = [self._cell(*cell) for cell in new or ()]
        array = types.NotebookCellArrayChange(start, len(gone), [_notebook_cell(item) for item in items])
        closed = [types.TextDocumentIdentifier(self.uri(each)) for each in gone]
        structure = types.NotebookDocumentCellChangeStructure(array, items, closed)
        self.change_notebook(name, types.NotebookDocumentCellChanges(structure))

    def close_notebook(self, name: str, cells: list[str]) -> None:
        named = types.NotebookDocumentIdentifier(self.uri(name))
        closed = [types.TextDocumentIdentifier(self.uri(cell)) for cell in cells]
        self._client.notebook_document_did_close(types.DidCloseNotebookDocumentParams(named, closed))

    def file_changed(self, name: str) -> None:
        event = types.FileEvent(self.uri(name), types.FileChangeType.Changed)
        self._client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([event]))

    def folders_changed(self, added: list[Path], removed: list[Path]) -> None:
        new, gone = ([types.WorkspaceFolder(f.as_uri(), f.name) for f in each] for each in (added, removed))
        event = types.WorkspaceFoldersChangeEvent(new, gone)
        self._client.workspace_did_change_workspace_folders(types.DidChangeWorkspaceFoldersParams(event))

    def settings_changed(self, settings: Any) -> None:
        self._client.workspace_did_change_configuration(types.DidChangeConfigurationParams(settings))

    def found(self, name: str) -> list[types.Diagnostic]:
        """What was published for the present version."""
        uri = self.uri(name)
        self.wait(lambda: uri in self._published and self._published[uri].version == self._versions[uri])
        return list(self._published[uri].diagnostics)

    def published(self, name: str) -> list[str]:
        """The codes that were published last."""
        return [str(item.code) for item in self._published[self.uri(name)].diagnostics]

    def was_published(self, name: str) -> bool:
        """Whether anything was said of a text."""
        return self.uri(name) in self._published

    def wait(self, condition: Callable[[], object]) -> None:
        async def loop() -> None:
            while not condition():
                await asyncio.sleep(0.01)

        self.run(loop())

    def hover(self, name: str, line: int, character: int) -> str:
        where = types.TextDocumentIdentifier(self.uri(name)), types.Position(line, character)
        found = self.run(self._client.text_document_hover_async(types.HoverParams(*where)))
        return found.contents.value if found else ""

    def actions(self, name: str, line: int, only: list[str] | None = None) -> list[types.CodeAction]:
        """The actions for a line."""
        params = types.CodeActionParams(
            types.TextDocumentIdentifier(self.uri(name)),
            types.Range(types.Position(line, 0), types.Position(line, 999)),
            types.CodeActionContext([], only=only),
        )
        return list(self.run(self._client.text_document_code_action_async(params)) or [])

    def resolve(self, action: types.CodeAction) -> types.CodeAction:
        return self.run(self._client.code_action_resolve_async(action))

    def command(self, name: str, *arguments: object) -> Any:
        """What a command of the server gives."""
        params = types.ExecuteCommandParams(name, list(arguments))
        return self.run(self._client.workspace_execute_command_async(params))

    def applied(self, name: str, action: types.CodeAction) -> str:
        """The text with the edits of an action, all of which are for it."""
        ((uri, text),) = self.all_applied(action).items()
        assert uri == self.uri(name)
        return text

    def all_applied(self, action: types.CodeAction) -> dict[str, str]:
        """The texts with the edits of an action, put in as the protocol says (columns are UTF-16)."""
        assert action.edit is not None
        edits = dict(action.edit.changes or {})
        for change in action.edit.document_changes or ():
            assert isinstance(change, types.TextDocumentEdit)
            assert change.text_document.version == self._versions[change.text_document.uri]
            edits[change.text_document.uri] = [e for e in change.edits if isinstance(e, types.TextEdit)]
        return {uri: _edited(self._texts[uri], own) for uri, own in edits.items()}

    def leave(self) -> int:
        """Say goodbye; gives the server's exit code."""
        self.run(self._client.shutdown_async(None))
        self._client.exit(None)
        return self.ended()

    def vanish(self) -> int:
        """Close the streams without a word."""
        self.process.stdin.close()
        return self.ended()

    def send(self, data: bytes) -> None:
        self.process.stdin.write(data)

    @property
    def process(self) -> Any:
        return self._client._server

    def ended(self) -> int:
        return int(self.run(self.process.wait()))

    def clean_up(self) -> None:
        if self.process is not None and self.process.returncode is None:
            self.process.kill()
            self.ended()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    def uri(self, name: str) -> str:
        if ":" in name:
            return name
        file, sign, cell = name.partition("#")
        return (self.folder / file).as_uri() + sign + cell


def _edited(text: str, edits: Sequence[types.TextEdit]) -> str:
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line.encode("utf-16-le")) + 2)
    data = text.encode("utf-16-le")

    def offset(place: types.Position) -> int:
        return starts[place.line] + 2 * place.character

    for edit in sorted(edits, key=lambda one: offset(one.range.start), reverse=True):
        new = edit.new_text.encode("utf-16-le")
        data = data[: offset(edit.range.start)] + new + data[offset(edit.range.end) :]
    return data.decode("utf-16-le")


def _notebook_cell(item: types.TextDocumentItem) -> types.NotebookCell:
    kind = types.NotebookCellKind.Markup if item.language_id == "markdown" else types.NotebookCellKind.Code
    return types.NotebookCell(kind, item.uri)


@pytest.fixture
def editor(tmp_path: Path) -> Iterator[Editor]:
    made = Editor(tmp_path)
    yield made
    made.clean_up()
