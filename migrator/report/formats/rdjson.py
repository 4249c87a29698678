"""Reviewdog's diagnostic format, with fixes as suggestions."""

from __future__ import annotations

import json
from typing import Any, TextIO

from migrator.findings.finding import Finding, Place
from migrator.report.formats import LintReport
from migrator.report.formats.style import line_and_column, placed_words_of, relative


def write(report: LintReport, stream: TextIO) -> None:
    """One object with all findings."""
    content = {
        "source": {"name": "npumigrate"},
        "severity": "WARNING",
        "diagnostics": [_diagnostic(item, report) for item in report.findings],
    }
    json.dump(content, stream, indent=2)
    stream.write("\n")


def _diagnostic(item: Finding, report: LintReport) -> dict[str, Any]:
    location: dict[str, Any] = {"path": relative(item.file)}
    if item.cell is None:
        location["range"] = _range(item.start, item.end)
    content: dict[str, Any] = {
        "message": placed_words_of(item),
        "location": location,
        "severity": ("error" if item.severity == "blocker" else item.severity).upper(),
        "code": {"value": item.code, **({"url": item.url} if item.url else {})},
    }
    # A suggestion stands alone; a fix of several edits would be half made.
    if item.fix is not None and item.cell is None and len(item.fix.all_edits) == 1:
        edit = report.edits(item)[0]
        content["suggestions"] = [{"range": _range(edit.start, edit.end), "text": edit.text}]
    return content


def _range(start: Place, end: Place) -> dict[str, dict[str, int]]:
    return {"start": line_and_column(start), "end": line_and_column(end)}
