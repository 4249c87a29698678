"""One line for each finding."""

from __future__ import annotations

from typing import TextIO

from migrator.report.colors import paint
from migrator.report.formats import LintReport
from migrator.report.formats.style import code_of, place_of, summary, words_of, wrapped


def write(report: LintReport, stream: TextIO) -> None:
    """``path:row:column: CODE message`` lines, then the summary."""
    for item in report.findings:
        sep = paint(":", "cyan", report.color)
        stream.write(f"{place_of(item, report)}{sep} {code_of(item, report)} {words_of(item)}\n")
    stream.writelines(wrapped(line, report.width) for line in summary(report))
