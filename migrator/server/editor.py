"""What the server says to the editor, as far as the editor understands it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Optional

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from migrator.findings.finding import Finding
from migrator.lint.suppressions import UNUSED
from migrator.server.documents import Part, Text

FIX_ALL = "source.fixAll.npumigrate"
_SEVERITIES = {
    "blocker": types.DiagnosticSeverity.Error,
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "info": types.DiagnosticSeverity.Information,
}


class Editor:
    """The editor at the other end."""

    def __init__(self, server: LanguageServer) -> None:
        self._server = server
        self.told: set[str] = set()
        self._watched: set[str] = set()

    def publish(self, uri: str, found: list[types.Diagnostic], version: Optional[int]) -> None:
        """These are the findings of a text now."""
        self._server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, found, version))

    def pulls(self) -> bool:
        """Whether it asks for findings itself: then none are sent on their own."""
        texts = self._server.client_capabilities.text_document
        return texts is not None and texts.diagnostic is not None

    def refresh(self) -> None:
        """Have it ask for the findings of all texts again."""
        workspace = self._server.client_capabilities.workspace
        if workspace and workspace.diagnostics and workspace.diagnostics.refresh_support:
            self._server.workspace_diagnostic_refresh(None)

    def tell(self, line: str) -> None:
        """Show a person what is wrong, once: ``told`` has what was."""
        if line not in self.told:
            self.told.add(line)
            message = types.ShowMessageParams(types.MessageType.Error, f"npumigrate: {line}")
            self._server.window_show_message(message)

    def log(self, line: str) -> None:
        """Write a line for whoever looks for it."""
        self._server.window_log_message(types.LogMessageParams(types.MessageType.Warning, line))

    async def watch(self, patterns: Iterable[str]) -> None:
        """Ask the editor to report changes in files, once for each pattern."""
        workspace = self._server.client_capabilities.workspace
        watching = workspace.did_change_watched_files if workspace else None
        new = [pattern for pattern in patterns if pattern not in self._watched]
        if not new or not watching or not watching.dynamic_registration:
            return
        self._watched.update(new)
        options = types.DidChangeWatchedFilesRegistrationOptions(
            [types.FileSystemWatcher(pattern) for pattern in new]
        )
        name = f"npumigrate.files.{len(self._watched)}"
        asked = types.Registration(name, types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)
        await self._server.client_register_capability_async(types.RegistrationParams([asked]))

    def edit(self, edits: Iterable[tuple[Part, types.TextEdit]]) -> types.WorkspaceEdit:
        """The edits for texts, tied to their versions where the editor knows of that."""
        of: dict[str, tuple[Part, list[types.TextEdit]]] = {}
        for part, edit in edits:
            of.setdefault(part.uri, (part, []))[1].append(edit)
        workspace = self._server.client_capabilities.workspace
        if workspace and workspace.workspace_edit and workspace.workspace_edit.document_changes:
            changes: list[Any] = []
            for uri, (part, own) in of.items():
                name = types.OptionalVersionedTextDocumentIdentifier(uri, part.version)
                changes.append(types.TextDocumentEdit(name, list(own)))
            return types.WorkspaceEdit(document_changes=changes)
        return types.WorkspaceEdit(changes={uri: own for uri, (_, own) in of.items()})

    def resolves(self) -> bool:
        """Whether it asks for an action's edits only once a person chose it."""
        texts = self._server.client_capabilities.text_document
        support = texts.code_action.resolve_support if texts and texts.code_action else None
        return support is not None and "edit" in support.properties


def diagnostic(item: Finding, text: Text) -> types.Diagnostic:
    """A finding with its place in the editor; no more than information where a safe fix corrects it."""
    return types.Diagnostic(
        range=text.span(item.start, item.end),
        message=f"{item.message}\n{item.advice}" if item.advice else item.message,
        severity=types.DiagnosticSeverity.Information if item.safely_fixable else _SEVERITIES[item.severity],
        code=item.code,
        code_description=types.CodeDescription(item.url) if item.url else None,
        source="npumigrate",
        tags=[types.DiagnosticTag.Unnecessary] if item.code == UNUSED else None,
    )


def touching(found: Iterable[Finding], start: int, end: int, text: Text) -> list[Finding]:
    """The findings that lie at, or between, two indices of the text."""
    places = [(item, text.index(item.start), text.index(item.end)) for item in found]
    return [item for item, first, last in places if first <= end and start <= last]


def wanted(kind: str, only: Sequence[str] | None) -> bool:
    """Whether the editor asks for a kind of action: by its name, or by that of a wider kind."""
    return only is None or any(kind == each or kind.startswith(f"{each}.") for each in only)
