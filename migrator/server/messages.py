"""Findings and fixes as the protocol has them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lsprotocol import types

from migrator.findings.finding import Finding
from migrator.lint.suppressions import UNUSED, added_noqa
from migrator.server.texts import Text

FIX_ALL = "source.fixAll.npumigrate"
_SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "info": types.DiagnosticSeverity.Information,
}


def diagnostic(item: Finding, text: Text) -> types.Diagnostic:
    """A finding with its place in the editor."""
    return types.Diagnostic(
        range=text.span(item.start, item.end),
        message=f"{item.message}\n{item.advice}" if item.advice else item.message,
        severity=_SEVERITIES[item.severity],
        code=item.code,
        code_description=types.CodeDescription(item.url) if item.url else None,
        source="npumigrate",
        tags=[types.DiagnosticTag.Unnecessary] if item.code == UNUSED else None,
    )


def touching(found: Iterable[Finding], start: int, end: int, text: Text) -> list[Finding]:
    """The findings that lie at, or between, two indices of the text."""
    places = [(item, text.index(item.start), text.index(item.end)) for item in found]
    return [item for item, first, last in places if first <= end and start <= last]


def fix_title(item: Finding) -> str:
    """What the editor's menu says of a finding's fix."""
    assert item.fix
    title = f"{item.code}: {item.fix.message}"
    return title if item.safely_fixable else f"{title} (unsafe: look at it)"


def noqa_edits(item: Finding, text: Text) -> list[types.TextEdit]:
    """The edits that suppress a finding."""
    return text.edits_to(added_noqa(text.text, [item], lambda _: 1)[0])


def wanted(kind: str, only: Sequence[str] | None) -> bool:
    """Whether the editor asks for a kind of action: by its name, or by that of a wider kind."""
    return only is None or any(kind == each or kind.startswith(f"{each}.") for each in only)
