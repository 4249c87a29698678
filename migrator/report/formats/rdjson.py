"""Reviewdog's diagnostic format, with fixes as suggestions."""

from __future__ import annotations

import json
from typing import Any, TextIO

from migrator.lint.diagnostic import Diagnostic, LintReport, Position
from migrator.report.formats.style import placed_words_of
from migrator.report.formats.uris import relative

_SEVERITIES = {"error": "ERROR", "warning": "WARNING", "info": "INFO"}


def write(report: LintReport, stream: TextIO) -> None:
    """One object with all findings."""
    content = {
        "source": {"name": "npumigrate"},
        "severity": "WARNING",
        "diagnostics": [_diagnostic(item) for item in report.diagnostics],
    }
    json.dump(content, stream, indent=2)
    stream.write("\n")


def _diagnostic(item: Diagnostic) -> dict[str, Any]:
    location: dict[str, Any] = {"path": relative(item.path)}
    if item.cell is None:
        location["range"] = _range(Position(item.row, item.column), Position(item.end_row, item.end_column))
    content: dict[str, Any] = {
        "message": placed_words_of(item),
        "location": location,
        "severity": _SEVERITIES[item.severity],
        "code": {"value": item.code, **({"url": item.url} if item.url else {})},
    }
    # A suggestion stands alone; a fix of several edits would be half made.
    if item.fix is not None and item.cell is None and len(item.fix.edits) == 1:
        edit = item.fix.edits[0]
        content["suggestions"] = [{"range": _range(edit.start, edit.end), "text": edit.content}]
    return content


def _range(start: Position, end: Position) -> dict[str, dict[str, int]]:
    return {
        "start": {"line": start.row, "column": start.column},
        "end": {"line": end.row, "column": end.column},
    }
