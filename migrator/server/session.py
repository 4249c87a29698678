"""The language server: one editor's session, its open documents, and what is reported of them.

Linting is done in one thread of its own, one text at a time: the session answers meanwhile, and a
text that was typed over before its turn is not linted at all.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Coroutine, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Callable, Optional, TypeVar

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from migrator import __version__
from migrator.files.document import NOTEBOOK
from migrator.files.document import Document as FileDocument
from migrator.files.notebook import Notebook
from migrator.files.source import Source
from migrator.findings.finding import Finding
from migrator.language import _
from migrator.lint.config_files import Configuration
from migrator.lint.files import stamp
from migrator.lint.options import rule_set
from migrator.lint.suppressions import UNUSED, with_comments
from migrator.server import hover
from migrator.server.analysis import Analysis, Question, answer, fixed, migrated
from migrator.server.documents import UTF16, Document, Part, Text, place_of
from migrator.server.editor import FIX_ALL, Editor, diagnostic, touching, wanted
from migrator.server.workspace import LARGEST, Settings, WorkspaceFacts, text_of

_PAUSE = 0.2  # seconds without a key before a text is linted
_SOURCES = (".py", ".ipynb")
# What editors are asked to watch, beside the baselines and rule packs that are in use.
_WATCHED = ("**/*.{py,ipynb}", "**/{.npumigrate,npumigrate,pyproject}.toml")
_DONE = 0
_GONE = 1
_OPTIONS: dict[str, Any] = {
    types.TEXT_DOCUMENT_CODE_ACTION: types.CodeActionOptions(
        [types.CodeActionKind.QuickFix, FIX_ALL], resolve_provider=True
    ),
    types.TEXT_DOCUMENT_DIAGNOSTIC: types.DiagnosticOptions(True, False, "npumigrate"),
}
# Notebooks of any kind: what is linted are their Python cells.
_NOTEBOOKS = types.NotebookDocumentSyncOptions(
    [types.NotebookDocumentFilterWithCells([types.NotebookCellLanguage("python")])], save=True
)

Result = TypeVar("Result")


class Session:
    """What the server knows; its methods are what the editor's messages ask for."""

    def __init__(self, server: LanguageServer) -> None:
        self._server = server
        self._editor = Editor(server)
        self._settings = Settings()
        self._facts = WorkspaceFacts()
        self._documents: dict[str, Document] = {}
        self._worker = ThreadPoolExecutor(1)
        self._tasks: set[asyncio.Task[None]] = set()
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

    def started(self, _: types.InitializedParams) -> None:
        """Look at the workspace, and ask the editor to report changes in it."""
        self._later(self._editor.watch(_WATCHED))
        for folder in self._settings.folders:
            self._later(self._scan(folder))

    def take_settings(self, given: Any) -> None:
        """Use the editor's settings; what is wrong with them is shown."""
        try:
            self._settings.take(given)
        except ValueError as error:
            self._editor.tell(str(error))

    def change_folders(self, params: types.DidChangeWorkspaceFoldersParams) -> None:
        """Folders were added to the workspace, or taken out of it."""
        event = params.event
        gone = _paths(folder.uri for folder in event.removed)
        new = _folders(folder.uri for folder in event.added)
        for folder in gone:
            self._facts.forget(folder)
        self._settings.set_folders([f for f in self._settings.folders if f not in gone] + new)
        for folder in new:
            self._later(self._scan(folder))
        self.check_all()

    def change_settings(self, params: types.DidChangeConfigurationParams) -> None:
        """The editor's settings have changed; some editors send none, or those of all programs."""
        given = params.settings
        if isinstance(given, dict) and "npumigrate" in given:
            self.take_settings(given["npumigrate"] or {})
            self.check_all()

    def end(self, _: None = None) -> None:
        """The editor says goodbye."""
        self.stopped = True
        self.stop()

    def stop(self) -> None:
        """Do nothing more, but for what the worker has begun."""
        for document in self._documents.values():
            if document.waiting:
                document.waiting.cancel()
        for task in self._tasks:
            task.cancel()
        self._worker.shutdown(wait=False, cancel_futures=True)

    # -- documents -------------------------------------------------------------

    def open(self, params: types.DidOpenTextDocumentParams) -> None:
        """A document was opened."""
        item = params.text_document
        self._add(Document(item.uri, place_of(item.uri, "untitled.py"), [self._part(item)]))

    def change(self, params: types.DidChangeTextDocumentParams) -> None:
        """The text of a document was changed."""
        document = self._documents.get(params.text_document.uri)
        if document is not None:
            document.parts[0].change(params.text_document.version, params.content_changes)
            self._check_soon(document, _PAUSE)

    def open_notebook(self, params: types.DidOpenNotebookDocumentParams) -> None:
        """A notebook was opened."""
        uri = params.notebook_document.uri
        document = Document(uri, place_of(uri, "untitled.ipynb"), [], notebook=True)
        self._arrange(document, params.notebook_document.cells, params.cell_text_documents)
        self._add(document)

    def change_notebook(self, params: types.DidChangeNotebookDocumentParams) -> None:
        """The cells of a notebook, or the texts in them, have changed."""
        uri = params.notebook_document.uri
        document = self._documents.get(uri)
        now = self._server.workspace.get_notebook_document(notebook_uri=uri)
        cells = params.change.cells
        if document is None or now is None or cells is None:
            return
        opened = cells.structure.did_open if cells.structure else None
        before = document.parts
        self._arrange(document, now.cells, opened or ())
        for part in before:
            if part not in document.parts:
                self._editor.publish(part.uri, [], None)
        for change in cells.text_content or ():
            for part in document.parts:
                if part.uri == change.document.uri:
                    part.change(change.document.version, change.changes)
        self._check_soon(document, _PAUSE)

    def _arrange(
        self,
        document: Document,
        cells: Iterable[types.NotebookCell],
        opened: Iterable[types.TextDocumentItem],
    ) -> None:
        """Give a notebook its cells in their order: those that it has, and those that are opened."""
        parts = {part.uri: part for part in document.parts}
        parts.update((item.uri, self._part(item)) for item in opened if item.language_id == "python")
        code = [cell.document for cell in cells if cell.kind == types.NotebookCellKind.Code]
        document.parts = [parts[uri] for uri in code if uri in parts]

    def _add(self, document: Document) -> None:
        self._documents[document.uri] = document
        self._check_soon(document, 0)

    def _part(self, item: types.TextDocumentItem) -> Part:
        units = self._server.workspace.position_encoding or UTF16
        return Part(item.uri, item.version, Text(item.text, str(getattr(units, "value", units))))

    def close(self, uri: str) -> None:
        """A document was closed: its findings go, and what others know of it is read from the disk."""
        document = self._documents.pop(uri, None)
        if document is None:
            return
        if document.waiting:
            document.waiting.cancel()
        for part in document.parts:
            self._editor.publish(part.uri, [], None)
        self._later(self._look_again([document.place]))

    def files_changed(self, params: types.DidChangeWatchedFilesParams) -> None:
        """Files were changed on the disk."""
        places = _paths(change.uri for change in params.changes)
        self._later(self._look_again([place for place in places if place.suffix in _SOURCES]))
        if any(place.suffix not in _SOURCES for place in places):
            self._editor.told.clear()  # what was wrong may have been corrected
            self.check_all()

    def check_all(self, _: object = None, but: Optional[Document] = None) -> None:
        """Lint all open documents again, ``but`` for one that was linted just now."""
        if self._editor.pulls():
            self._editor.refresh()
        for document in self._documents.values():
            if document is not but:
                self._check_soon(document, 0)

    def _check_soon(self, document: Document, pause: float) -> None:
        if self._editor.pulls():
            return
        if document.waiting:
            document.waiting.cancel()
        document.waiting = asyncio.ensure_future(self._check(document, pause))

    async def _check(self, document: Document, pause: float) -> None:
        await asyncio.sleep(pause)
        current, analysis = await self._current(document)
        if current and self._documents.get(document.uri) is document:
            for part in document.parts:
                self._editor.publish(part.uri, _shown(document, part, analysis), part.version)

    async def _current(self, document: Document) -> tuple[bool, Optional[Analysis]]:
        """Whether the analysis is of what a document still says by then, and the analysis."""
        texts = document.texts()
        try:
            analysis = await self._analysis(document)
        except ValueError as error:
            self._editor.tell(str(error))
            return False, None
        return document.texts() == texts, analysis

    async def _analysis(self, document: Document) -> Optional[Analysis]:
        """The analysis of a document's text; None where it is not to be linted.

        Raises ConfigError, RuleError and UnknownVersion where its options cannot be used.
        """
        content = document.content()
        analysis = await self._work(lambda: self._analysed(document, content))
        if self._news:
            self._news = False
            self.check_all(but=document)
        if analysis:
            options = analysis.question.target.options
            files = [f"**/{Path(file).name}" for file in (options.baseline, *options.rules) if file]
            self._later(self._editor.watch(files))
        if analysis and analysis.trouble:
            self._editor.log(f"{document.place}: {analysis.trouble}")
        return analysis

    def _analysed(self, document: Document, content: Source | Notebook) -> Optional[Analysis]:
        """In the worker: the analysis; None where the file is not to be linted."""
        place = document.place
        is_json = place.suffix == NOTEBOOK and not document.notebook
        target = None if is_json else self._settings.target(place)
        if target is None:
            return None
        if len(content.text) > LARGEST:
            # To parse it alone would keep all others waiting for seconds.
            raise ValueError(
                _("{place}: too large to be checked while open: use npumigrate lint", place=place)
            )
        folder = self._settings.folder_of(place)
        if isinstance(content, Notebook) or not content.type:
            self._news = self._facts.learn(folder, target, content.text) or self._news
        known = [target.options.baseline] if target.options.baseline else []
        target = target.judged_by(rule_set(target.options))
        asked = Question(content, target, self._facts.project(folder, place), stamp(known))
        if document.analysis is None or document.analysis.question != asked:
            document.analysis = answer(asked, document.analysis)
        return document.analysis

    # -- questions -------------------------------------------------------------

    async def hover(self, params: types.HoverParams) -> Optional[types.Hover]:
        """What is known of the name, and of the finding, under the cursor."""
        asked = await self._asked(params.text_document.uri)
        if asked is None:
            return None
        document, part, analysis = asked
        offset, cell = part.text.offset(params.position), document.number(part)
        return await self._work(lambda: hover.shown(analysis, cell, part.text, offset))

    async def pulled(self, params: types.DocumentDiagnosticParams) -> types.DocumentDiagnosticReport:
        """The findings of a text, for an editor that asks for them. Raises JsonRpcException: ask again."""
        document, part = self._with(params.text_document.uri)
        if document is None or part is None:
            return types.RelatedFullDocumentDiagnosticReport([])
        current, analysis = await self._current(document)
        if not current and self._documents.get(document.uri) is document:
            data = types.DiagnosticServerCancellationData(retrigger_request=True)
            raise JsonRpcException("the text has changed", types.LSPErrorCodes.ServerCancelled, data)
        return types.RelatedFullDocumentDiagnosticReport(_shown(document, part, analysis))

    async def actions(self, params: types.CodeActionParams) -> list[types.CodeAction]:
        """What can be done about the findings that a selection touches, and about all of them."""
        asked = await self._asked(params.text_document.uri)
        if asked is None:
            return []
        document, part, analysis = asked
        text, only = part.text, params.context.only
        start, end = text.offset(params.range.start), text.offset(params.range.end)
        found: list[types.CodeAction] = []
        if wanted(types.CodeActionKind.QuickFix, only):
            own = [item for item in analysis.found if item.cell == document.number(part)]
            for item in touching(own, start, end, text):
                quick = partial(
                    types.CodeAction, kind=types.CodeActionKind.QuickFix, diagnostics=[diagnostic(item, text)]
                )
                if item.fix:
                    safe = item.safely_fixable
                    title = f"{item.code}: {item.fix.message}{'' if safe else _(' (unsafe: review it)')}"
                    edit = self._editor.edit(document.fix_edits(item))
                    found.append(quick(title, is_preferred=safe, edit=edit))
                if item.noqa_line is not None and item.code != UNUSED:
                    suppressed = _suppressed(document, text.text, item)
                    if suppressed != text.text:  # JSON has no comments
                        edit = self._editor.edit([(part, edit) for edit in text.edits_to(suppressed)])
                        title = _("{code}: Suppress on this line (noqa)", code=item.code)
                        found.append(quick(title, is_preferred=False, edit=edit))
        if wanted(FIX_ALL, only) and any(item.safely_fixable for item in analysis.found):
            title = _("npumigrate: Apply all safe fixes")
            every = types.CodeAction(title, kind=FIX_ALL, data={"uri": part.uri})
            found.append(every if self._editor.resolves() else await self.resolve(every))
        return found

    async def resolve(self, action: types.CodeAction) -> types.CodeAction:
        """The action with its edits: fixing all is only worked out once it is chosen."""
        uri = action.data.get("uri") if isinstance(action.data, dict) else None
        asked = await self._asked(str(uri))
        if asked is not None and not asked[2].broken:
            document, _, analysis = asked
            texts = document.texts()
            new = await self._work(lambda: fixed(analysis))
            if document.texts() == texts:
                action.edit = self._editor.edit(document.edits_to(new))
        return action

    async def migrated(self, uri: str) -> Optional[str]:
        """The text of an open file with all fixes, the unsafe ones too; None for what is not looked at."""
        asked = await self._asked(uri)
        if asked is None or asked[0].notebook or asked[2].broken:
            return None
        return await self._work(lambda: migrated(asked[2]))

    async def explained(self, uri: str, code: str) -> Optional[str]:
        """A rule, by its code, as Markdown; None where there is none for an open document."""
        asked = await self._asked(uri)
        return await self._work(lambda: hover.explained(asked[2], code)) if asked else None

    async def _asked(self, uri: str) -> Optional[tuple[Document, Part, Analysis]]:
        """The document with a URI, or the one with that cell; None where nothing can be said of it now."""
        document, part = self._with(uri)
        if document is None or part is None:
            return None
        current, analysis = await self._current(document)
        return (document, part, analysis) if analysis and current else None

    def _with(self, uri: str) -> tuple[Document, Part] | tuple[None, None]:
        """The document with a URI, or the one with that cell, and what of it has the URI."""
        pairs = ((each, part) for each in self._documents.values() for part in each.parts)
        return next(((each, part) for each, part in pairs if part.uri == uri), (None, None))

    # -- the workspace ---------------------------------------------------------

    async def _scan(self, folder: Path) -> None:
        """Learn what the files of a folder define, with breaks for whoever types meanwhile."""
        steps = self._facts.scan(folder, Configuration(self._settings.of_editor))
        while (found := await self._work(lambda: next(steps, None))) is not None:
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
            return False  # it is shown where a document needs it
        folder = self._settings.folder_of(place)
        return bool(target and folder and self._facts.learn(folder, target, text_of(target)))

    # -- the editor ------------------------------------------------------------

    async def _work(self, work: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._worker, work)

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)  # a task that nobody holds may be dropped
        task.add_done_callback(self._tasks.discard)


def _shown(document: Document, part: Part, analysis: Optional[Analysis]) -> list[types.Diagnostic]:
    """The findings of a file, or of a notebook's cell."""
    found = analysis.found if analysis else ()
    return [diagnostic(item, part.text) for item in found if item.cell == document.number(part)]


def _suppressed(document: Document, text: str, item: Finding) -> str:
    """The text of a file or a cell with a comment that suppresses a finding."""
    content = document.content()
    kind = content.type if isinstance(content, Source) else ""
    return with_comments(FileDocument(b"", Source(content.name, text, type=kind)), [item])[0]


def _paths(uris: Iterable[str]) -> list[Path]:
    return [Path(path) for path in map(to_fs_path, uris) if path]


def _folders(uris: Iterable[str]) -> list[Path]:
    return [path for path in _paths(uris) if path.is_dir()]


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
        types.TEXT_DOCUMENT_DIAGNOSTIC: session.pulled,
        types.TEXT_DOCUMENT_HOVER: session.hover,
        types.TEXT_DOCUMENT_CODE_ACTION: session.actions,
        types.CODE_ACTION_RESOLVE: session.resolve,
        types.SHUTDOWN: session.end,
    }
    for message, method in answers.items():
        options = _OPTIONS.get(message)
        server.feature(message, options)(partial(method))  # pygls marks it, which a method does not allow
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
