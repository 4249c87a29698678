"""JSON with the keys that ruff uses, so that what reads ruff's output reads this."""

from __future__ import annotations

import json
import os
from typing import Any, TextIO

from migrator.lint.diagnostic import Diagnostic, Fix, LintReport, Position


def write(report: LintReport, stream: TextIO) -> None:
    """One array of all findings."""
    json.dump([as_dict(item) for item in report.diagnostics], stream, indent=2)
    stream.write("\n")


def as_dict(item: Diagnostic) -> dict[str, Any]:
    """A finding under ruff's keys, and our own beside them: severity, rule, advice and api."""
    return {
        "cell": item.cell,
        "code": item.code,
        "name": item.rule,
        "severity": item.severity,
        "filename": os.path.abspath(item.path) if item.path != "-" else "-",
        "location": _position(Position(item.row, item.column)),
        "end_location": _position(Position(item.end_row, item.end_column)),
        "message": item.message,
        "advice": item.advice or None,
        "api": item.api or None,
        "fix": _fix(item.fix) if item.fix else None,
        "noqa_row": item.noqa_row,
        "url": item.url or None,
    }


def _fix(fix: Fix) -> dict[str, Any]:
    edits = [
        {
            "content": edit.content,
            "location": _position(edit.start),
            "end_location": _position(edit.end),
            **({"cell": edit.cell} if edit.cell is not None else {}),
        }
        for edit in fix.edits
    ]
    return {"applicability": fix.applicability, "message": fix.message, "edits": edits}


def _position(position: Position) -> dict[str, int]:
    return {"row": position.row, "column": position.column}
