"""JSON with the keys that ruff uses, so that what reads ruff's output reads this."""

from __future__ import annotations

import json
import os
from typing import Any, TextIO

from migrator.findings.finding import Finding, Fix, Place
from migrator.report.formats import LintReport


def write(report: LintReport, stream: TextIO) -> None:
    """One array of all findings, each written before the next one is made: there may be many."""
    before = "[\n  "
    for item in report.findings:
        stream.write(before + json.dumps(as_dict(item, report), indent=2).replace("\n", "\n  "))
        before = ",\n  "
    stream.write("\n]\n" if report.findings else "[]\n")


def as_dict(item: Finding, report: LintReport) -> dict[str, Any]:
    """A finding under ruff's keys, and our own beside them: severity, rule, advice and api."""
    return {
        "cell": item.cell,
        "code": item.code,
        "name": item.rule,
        "severity": item.severity,
        "filename": os.path.abspath(item.file) if item.file != "-" else "-",
        "location": _position(item.start),
        "end_location": _position(item.end),
        "message": item.message,
        "advice": item.advice or None,
        "api": item.api or None,
        "fix": _fix(item, item.fix, report) if item.fix else None,
        "noqa_row": item.noqa_line,
        "url": item.url or None,
    }


def _fix(item: Finding, fix: Fix, report: LintReport) -> dict[str, Any]:
    edits = [
        {
            "content": edit.text,
            "location": _position(edit.start),
            "end_location": _position(edit.end),
            **({"cell": edit.cell} if edit.cell is not None else {}),
        }
        for edit in report.edits(item)
    ]
    return {"applicability": fix.safety, "message": fix.message, "edits": edits}


def _position(place: Place) -> dict[str, int]:
    return {"row": place[0], "column": place[1]}
