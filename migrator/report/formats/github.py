"""Workflow commands of GitHub Actions: each finding becomes an annotation of its line."""

from __future__ import annotations

import os
from typing import TextIO

from migrator.files.errors import harmless
from migrator.report.formats import LintReport
from migrator.report.formats.style import cell_of, relative, words_of

_COMMANDS = {"blocker": "error", "error": "error", "warning": "warning", "info": "notice"}


def write(report: LintReport, stream: TextIO) -> None:
    """One ``::error …::message`` line for each finding; paths are those in the workspace."""
    for item in report.findings:
        path = relative(item.file, os.environ.get("GITHUB_WORKSPACE"))
        properties = {"title": f"npumigrate ({item.code})", "file": path}
        if item.cell is None:  # rows of a notebook count in the cell, and would point elsewhere in the file
            properties.update(line=str(item.line), endLine=str(item.end_line))
            if item.line == item.end_line:  # GitHub refuses columns of a span of several lines
                properties.update(col=str(item.column), endColumn=str(item.end_column))
        listed = ",".join(
            f"{key}={_message(value).replace(':', '%3A').replace(',', '%2C')}"
            for key, value in properties.items()
        )
        text = f"{path}:{cell_of(item)}{item.line}:{item.column}: {item.code} {words_of(item)}"
        stream.write(f"::{_COMMANDS[item.severity]} {listed}::{_message(text)}\n")


def _message(text: str) -> str:
    return harmless(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
