"""Logging commands of Azure Pipelines: each finding becomes an issue of the build."""

from __future__ import annotations

from typing import TextIO

from migrator.files.errors import harmless
from migrator.report.formats import LintReport
from migrator.report.formats.style import placed_words_of, relative


def write(report: LintReport, stream: TextIO) -> None:
    """One ``##vso[task.logissue …]`` line for each finding. Azure knows errors and warnings only."""
    for item in report.findings:
        kind = "error" if item.severity in ("blocker", "error") else "warning"
        place = f"linenumber={item.line};columnnumber={item.column};" if item.cell is None else ""
        stream.write(
            f"##vso[task.logissue type={kind};sourcepath={_escaped(relative(item.file))};{place}"
            f"code={item.code};]{_escaped(placed_words_of(item), message=True)}\n"
        )


def _escaped(text: str, message: bool = False) -> str:
    text = harmless(text).replace("%", "%AZP25").replace("\r", "%0D").replace("\n", "%0A")
    return text if message else text.replace(";", "%3B").replace("]", "%5D")
