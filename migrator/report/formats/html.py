"""A page to look at: the findings by what they stop, each at its lines; as that of a migration."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any, TextIO

from migrator.findings.finding import Finding
from migrator.report.formats import LintReport
from migrator.report.rows import REVIEW, file_of, row_of


def write(report: LintReport, stream: TextIO) -> None:
    """One self-contained page."""
    import pandas

    from migrator.files.errors import shown
    from migrator.report.views.page import pages
    from migrator.report.views.run import PLACE_COLUMNS, Run

    rows = []
    lines: dict[str, Finding] = {}
    for item in report.findings:
        file = file_of(shown(item.file), item)
        row: dict[str, Any] = {**row_of(shown(item.file), item), "table": REVIEW}
        if item.fix is not None:  # nothing was changed: that is what could be
            row["advice"] = item.advice or item.fix.message
        rows.append({name: row[name] for name in PLACE_COLUMNS})
        lines.setdefault(file, item)
    places = pandas.DataFrame(rows, columns=list(PLACE_COLUMNS))
    run = Run(
        "lint",
        shown(os.path.basename(os.getcwd())) or "/",
        places,
        pandas.DataFrame(columns=["file", "reason", "severity"]),
        _summary(report),
        lambda name: report.lines(lines[name]) or None,
    )
    for _, text in pages(run, report.rules(), one_page=True):
        stream.write(text)


def _summary(report: LintReport) -> dict[str, Any]:
    """The numbers that a migration's summary has, of these findings."""
    from migrator import __version__

    by_rule = Counter(item.code for item in report.findings)
    return {
        "npumigrate": __version__,
        "torch": "",
        "options": {},
        "files": {"seen": 0, "changed": 0},
        "changes": {"total": 0, "unsafe": 0, "by_rule": {}},
        "findings": {
            "fixable": sum(item.fix is not None for item in report.findings),
            "by_severity": Counter(item.severity for item in report.findings),
            "by_rule": {code: {"total": count} for code, count in by_rule.items()},
        },
    }
