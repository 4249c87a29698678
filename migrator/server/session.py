"""One editor's session: its open documents, and what is told of them.

Linting is done in one thread of its own, one text at a time: the session answers meanwhile, and a
text that was typed over before its turn is not linted at all.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Optional, TypeVar

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from migrator.lint.config_files import Configuration
from migrator.lint.engines import engine_for
from migrator.lint.suppressions import UNUSED
from migrator.server import hover, messages
from migrator.server.analysis import Analysis, answer, fixed, question
from migrator.server.facts import WorkspaceFacts, text_of
from migrator.server.settings import Settings
from migrator.server.texts import UTF16, Text

_PAUSE = 0.2  # seconds without a key before a text is linted
_NOTEBOOK = ".ipynb"

Result = TypeVar("Result")


@dataclass
class Document:
    """An open document."""

    uri: str
    place: Path
    version: Optional[int]
    text: Text
    analysis: Optional[Analysis] = None
    waiting: Optional[asyncio.Task[None]] = None


class Session:
    """What the server knows; its methods are what the editor's messages ask for."""

    def __init__(self, server: LanguageServer) -> None:
        self._server = server
        self._settings = Settings()
        self._facts = WorkspaceFacts()
        self._documents: dict[str, Document] = {}
        self._worker = ThreadPoolExecutor(1)
        self._tasks: set[asyncio.Task[None]] = set()
        self._told: set[str] = set()
        self._news = False  # a document defines other things than before that its neighbours have to know
        self.stopped = False  # the editor said goodbye

    # -- the session's start, settings and end ------------------------------

    def start(self, params: types.InitializeParams) -> None:
        """Take the workspace's folders and the editor's settings."""
        uris = [folder.uri for folder in params.workspace_folders or ()]
        uris = uris or [uri for uri in [params.root_uri] if uri]
        self._settings.set_folders(_folders(uris))
        if self._settings.folders:
            with suppress(OSError):
                os.chdir(self._settings.folders[0])  # where a person would run lint
        self.take_settings(params.initialization_options)

    def started(self) -> None:
        """Look at the workspace, and ask to be told of changes in it."""
        watching = self._server.client_capabilities.workspace
        watching_files = watching.did_change_watched_files if watching else None
        if watching_files and watching_files.dynamic_registration:
            patterns = ["**/*.py", "**/{.npumigrate,npumigrate,pyproject}.toml"]
            options = types.DidChangeWatchedFilesRegistrationOptions(
                [types.FileSystemWatcher(pattern) for pattern in patterns]
            )
            registration = types.Registration(
                "npumigrate.files", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options
            )
            self._later(self._register(registration))
        for folder in self._settings.folders:
            self._later(self._scan(folder))

    def take_settings(self, given: Any) -> None:
        """Use the editor's settings; what is wrong with them is told."""
        try:
            self._settings.take(given)
        except ValueError as error:
            self._tell(str(error))

    def change_folders(self, event: types.WorkspaceFoldersChangeEvent) -> None:
        """Folders were added to the workspace, or taken out of it."""
        gone = [Path(path) for path in (to_fs_path(folder.uri) for folder in event.removed) if path]
        new = _folders(folder.uri for folder in event.added)
        for folder in gone:
            self._facts.forget(folder)
        self._settings.set_folders([f for f in self._settings.folders if f not in gone] + new)
        for folder in new:
            self._later(self._scan(folder))
        self.check_all()

    def change_settings(self, given: Any) -> None:
        """The editor's settings have changed; some editors send none, or those of all programs."""
        if isinstance(given, dict) and "npumigrate" in given:
            self.take_settings(given["npumigrate"] or {})
            self.check_all()

    def stop(self) -> None:
        """Do nothing more, but for what the worker has begun."""
        for document in self._documents.values():
            if document.waiting:
                document.waiting.cancel()
        for task in self._tasks:
            task.cancel()
        self._worker.shutdown(wait=False, cancel_futures=True)

    # -- documents -------------------------------------------------------------

    def open(self, item: types.TextDocumentItem) -> None:
        """A document was opened."""
        path = to_fs_path(item.uri)
        name = path if item.uri.startswith("file:") and path else "untitled.py"
        units = self._server.workspace.position_encoding or UTF16
        text = Text(item.text, str(getattr(units, "value", units)))
        document = Document(item.uri, Path(os.path.abspath(name)), item.version, text)
        self._documents[item.uri] = document
        self._check_soon(document, 0)

    def change(self, params: types.DidChangeTextDocumentParams) -> None:
        """The text of a document was changed."""
        document = self._documents.get(params.text_document.uri)
        if document is None:
            return
        for change in params.content_changes:
            document.text = document.text.changed(getattr(change, "range", None), change.text)
        document.version = params.text_document.version
        self._check_soon(document, _PAUSE)

    def close(self, uri: str) -> None:
        """A document was closed: its findings go, and what others know of it is read from the disk."""
        document = self._documents.pop(uri, None)
        if document is None:
            return
        if document.waiting:
            document.waiting.cancel()
        self._publish(uri, [], None)
        self._later(self._look_again([document.place]))

    def files_changed(self, uris: Sequence[str]) -> None:
        """Files were changed on the disk."""
        places = [Path(path) for path in map(to_fs_path, uris) if path]
        self._later(self._look_again([place for place in places if place.suffix == ".py"]))
        if any(place.suffix == ".toml" for place in places):
            self._told.clear()
            self.check_all()

    def check_all(self) -> None:
        """Lint all open documents again."""
        for document in self._documents.values():
            self._check_soon(document, 0)

    def _check_soon(self, document: Document, pause: float) -> None:
        if document.waiting:
            document.waiting.cancel()
        document.waiting = asyncio.ensure_future(self._check(document, pause))

    async def _check(self, document: Document, pause: float) -> None:
        await asyncio.sleep(pause)
        text, version = document.text, document.version
        try:
            analysis = await self._analysis(document)
        except ValueError as error:
            self._tell(str(error))
            return
        if document.text is text and document.uri in self._documents:
            found = analysis.found if analysis else ()
            self._publish(document.uri, [messages.diagnostic(item, text) for item in found], version)

    async def _analysis(self, document: Document) -> Optional[Analysis]:
        """The analysis of a document's text; None where it is not to be linted.

        Raises ConfigError, RuleError and UnknownVersion where its options cannot be used.
        """
        text = document.text
        analysis = await self._work(lambda: self._analysed(document, text.text))
        if self._news:
            self._news = False
            for other in self._documents.values():
                if other is not document:
                    self._check_soon(other, 0)
        if analysis and analysis.trouble:
            self._log(f"{document.place}: {analysis.trouble}")
        return analysis

    def _analysed(self, document: Document, text: str) -> Optional[Analysis]:
        """In the worker: the analysis; None where the file is not to be linted."""
        place = document.place
        target = self._settings.target(place) if place.suffix != _NOTEBOOK else None
        if target is None:
            return None
        folder = self._settings.folder_of(place)
        self._news = self._facts.learn(folder, target, text) or self._news
        asked = question(text, target, self._facts.project(folder, place))
        if document.analysis is None or document.analysis.question != asked:
            document.analysis = answer(asked, document.analysis)
        return document.analysis

    # -- questions -------------------------------------------------------------

    async def hover(self, params: types.HoverParams) -> Optional[types.Hover]:
        """What is known of the name, and of the finding, under the cursor."""
        document, analysis = await self._asked(params.text_document.uri)
        if document is None or analysis is None:
            return None
        text = document.text
        offset = text.offset(params.position)
        return await self._work(lambda: _hover(analysis, text, offset))

    async def actions(self, params: types.CodeActionParams) -> list[types.CodeAction]:
        """What can be done about the findings that a selection touches, and about all of them."""
        document, analysis = await self._asked(params.text_document.uri)
        if document is None or analysis is None or document.text.text != analysis.question.text:
            return []
        text, only = document.text, params.context.only
        start, end = text.offset(params.range.start), text.offset(params.range.end)
        found: list[types.CodeAction] = []
        if messages.wanted(types.CodeActionKind.QuickFix, only):
            for item in messages.touching(analysis.found, start, end, text):
                here = [messages.diagnostic(item, text)]
                if item.fix:
                    edit = self._edit(document, messages.fix_edits(item, text))
                    found.append(_quick(messages.fix_title(item), here, edit, item.safely_fixable))
                if item.noqa_row is not None and item.code != UNUSED:
                    edit = self._edit(document, messages.noqa_edits(item, text))
                    found.append(_quick(f"{item.code}: Suppress on this line (noqa)", here, edit, False))
        if messages.wanted(messages.FIX_ALL, only) and any(item.safely_fixable for item in analysis.found):
            every = types.CodeAction(
                title="npumigrate: Fix all that is safe to fix",
                kind=messages.FIX_ALL,
                data={"uri": document.uri},
            )
            found.append(every if self._resolves() else await self.resolve(every))
        return found

    async def resolve(self, action: types.CodeAction) -> types.CodeAction:
        """The action with its edits: fixing all is only worked out once it is chosen."""
        uri = action.data.get("uri") if isinstance(action.data, dict) else None
        document, analysis = await self._asked(str(uri))
        if document is not None and analysis is not None and not analysis.broken:
            text = document.text
            new = await self._work(lambda: fixed(analysis))
            if text.text == analysis.question.text:
                action.edit = self._edit(document, text.edits_to(new))
        return action

    async def _asked(self, uri: str) -> tuple[Optional[Document], Optional[Analysis]]:
        document = self._documents.get(uri)
        if document is None:
            return None, None
        try:
            return document, await self._analysis(document)
        except ValueError as error:
            self._tell(str(error))
            return document, None

    def _edit(self, document: Document, edits: Sequence[types.TextEdit]) -> types.WorkspaceEdit:
        """The edits for a document, tied to its version where the editor knows of that."""
        workspace = self._server.client_capabilities.workspace
        if workspace and workspace.workspace_edit and workspace.workspace_edit.document_changes:
            name = types.OptionalVersionedTextDocumentIdentifier(document.uri, document.version)
            return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(name, list(edits))])
        return types.WorkspaceEdit(changes={document.uri: list(edits)})

    def _resolves(self) -> bool:
        texts = self._server.client_capabilities.text_document
        support = texts.code_action.resolve_support if texts and texts.code_action else None
        return support is not None and "edit" in support.properties

    # -- the workspace ---------------------------------------------------------

    async def _scan(self, folder: Path) -> None:
        """Learn what the files of a folder define, with breaks for whoever types meanwhile."""
        steps = self._facts.scan(folder, Configuration(self._settings.of_editor))
        while True:
            try:
                found = await self._work(lambda: next(steps, None))
            except ValueError as error:
                self._tell(str(error))
                return
            if found is None:
                return
            if found:
                self.check_all()

    async def _look_again(self, places: Sequence[Path]) -> None:
        shut = [place for place in places if all(place != each.place for each in self._documents.values())]
        if await self._work(lambda: [place for place in shut if self._learned(place)]):
            self.check_all()

    def _learned(self, place: Path) -> bool:
        """In the worker: read a file that is not open again, and say whether that was worth it."""
        try:
            target = self._settings.target(place)
        except ValueError:
            return False  # it is told where a document needs it
        folder = self._settings.folder_of(place)
        return bool(target and folder and self._facts.learn(folder, target, text_of(target)))

    # -- the editor ------------------------------------------------------------

    async def _work(self, work: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._worker, work)

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)  # a task that nobody holds may be dropped
        task.add_done_callback(self._tasks.discard)

    async def _register(self, registration: types.Registration) -> None:
        await self._server.client_register_capability_async(types.RegistrationParams([registration]))

    def _publish(self, uri: str, found: list[types.Diagnostic], version: Optional[int]) -> None:
        self._server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, found, version))

    def _tell(self, line: str) -> None:
        """Show a person what is wrong, once."""
        if line not in self._told:
            self._told.add(line)
            message = types.ShowMessageParams(types.MessageType.Error, f"npumigrate: {line}")
            self._server.window_show_message(message)

    def _log(self, line: str) -> None:
        self._server.window_log_message(types.LogMessageParams(types.MessageType.Warning, line))


def _folders(uris: Iterable[str]) -> list[Path]:
    return [Path(path) for path in map(to_fs_path, uris) if path and os.path.isdir(path)]


def _quick(
    title: str, found: list[types.Diagnostic], edit: types.WorkspaceEdit, preferred: bool
) -> types.CodeAction:
    kind = types.CodeActionKind.QuickFix
    return types.CodeAction(title=title, kind=kind, diagnostics=found, is_preferred=preferred, edit=edit)


def _hover(analysis: Analysis, text: Text, offset: int) -> Optional[types.Hover]:
    name, start, end = hover.qualified_name(text.text, offset)
    here = messages.touching(analysis.found, offset, offset, text)
    rules = analysis.question.rules
    status = hover.api_status(name, rules.version)
    if not status:
        for item in here:
            status = status or hover.api_status(item.api, rules.version)
    parts = [part for part in (status, hover.explanation(here, engine_for(rules).rules)) if part]
    if not parts:
        return None
    span = types.Range(text.place(start), text.place(end))
    return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, "\n---\n\n".join(parts)), span)
