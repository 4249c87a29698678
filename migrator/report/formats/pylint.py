"""Pylint's parseable lines, which many editors and CI plugins read."""

from __future__ import annotations

from typing import TextIO

from migrator.files.errors import shown
from migrator.report.formats import LintReport
from migrator.report.formats.style import cell_of, relative, words_of


def write(report: LintReport, stream: TextIO) -> None:
    """``path:row: [CODE] message`` for each finding."""
    for item in report.findings:
        place = f"{shown(relative(item.file))}:{cell_of(item)}{item.line}"
        stream.write(f"{place}: [{item.code}] {words_of(item)}\n")
