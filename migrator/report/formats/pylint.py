"""Pylint's parseable lines, which many editors and CI plugins read."""

from __future__ import annotations

from typing import TextIO

from migrator.files.errors import shown
from migrator.lint.diagnostic import LintReport
from migrator.report.formats.style import cell_of, words_of
from migrator.report.formats.uris import relative


def write(report: LintReport, stream: TextIO) -> None:
    """``path:row: [CODE] message`` for each finding."""
    for item in report.diagnostics:
        place = f"{shown(relative(item.path))}:{cell_of(item)}{item.row}"
        stream.write(f"{place}: [{item.code}] {words_of(item)}\n")
