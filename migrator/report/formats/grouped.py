"""The findings under the name of their file."""

from __future__ import annotations

from itertools import groupby
from typing import TextIO

from migrator.files.errors import shown
from migrator.report.colors import paint
from migrator.report.formats import LintReport
from migrator.report.formats.style import cell_of, code_of, summary, words_of, wrapped


def write(report: LintReport, stream: TextIO) -> None:
    """A heading for each file, and below it ``row:column CODE message`` in columns."""
    for path, group in groupby(report.findings, key=lambda item: item.file):
        items = list(group)
        stream.write(f"{paint(shown(path), 'bold', report.color)}:\n")
        places = [f"{cell_of(item)}{item.line}:{item.column}" for item in items]
        width = max(map(len, places))
        for item, place in zip(items, places):
            stream.write(f"  {place:<{width}}  {code_of(item, report)} {words_of(item)}\n")
        stream.write("\n")
    stream.writelines(wrapped(line, report.width) for line in summary(report))
