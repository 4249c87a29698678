"""For people: each finding with its source line, the default."""

from __future__ import annotations

from typing import TextIO

from migrator.files.errors import shown
from migrator.findings.finding import Finding
from migrator.language import _
from migrator.report.colors import paint
from migrator.report.formats import LintReport
from migrator.report.formats.style import COLORS, code_of, place_of, summary, wrapped

_LONGEST = 160  # characters of a source line
_MOST_LINES = 4


def write(report: LintReport, stream: TextIO) -> None:
    """A heading, the place, the source with its marks and what to do, for each finding; then the summary."""
    for item in report.findings:
        color = report.color
        stream.write(wrapped(f"{code_of(item, report)} {item.message}", report.width))
        source = _source(item, report)
        gutter = " " * max((len(number) for number, _, _ in source), default=1)
        bar = paint("|", "blue", color)
        stream.write(f"{gutter}{paint('-->', 'blue', color)} {place_of(item, report)}\n")
        if source:
            stream.write(f"{gutter} {bar}\n")
        for number, line, marks in source:
            stream.write(f"{paint(number.rjust(len(gutter)), 'blue', color)} {bar} {line}\n")
            if marks:
                stream.write(f"{gutter} {bar} {paint(marks, COLORS[item.severity], color)}\n")
        if source:
            stream.write(f"{gutter} {bar}\n")
        if item.advice and item.advice not in item.message:
            stream.write(wrapped(f"{paint(_('help'), 'cyan', color)}: {item.advice}", report.width))
        if item.fix is not None:
            kind = _("fix") if item.safely_fixable else _("unsafe fix")
            stream.write(wrapped(f"{paint(kind, 'cyan', color)}: {item.fix.message}", report.width))
        stream.write("\n")
    stream.writelines(wrapped(line, report.width) for line in summary(report))


def _source(item: Finding, report: LintReport) -> list[tuple[str, str, str]]:
    """Line number, text and the marks below it, for the lines of the finding."""
    lines = report.lines(item)
    result = []
    last_row = min(item.end_line, item.line + _MOST_LINES - 1)
    for row, line in enumerate(lines[item.line - 1 : last_row], item.line):
        first = item.column if row == item.line else len(line) - len(line.lstrip()) + 1
        last = item.end_column if row == item.end_line else len(line) + 1
        # A line of a megabyte is nothing that anybody reads.
        cut = first - _LONGEST // 4 if first > _LONGEST else 0
        text = _plain(line[cut : cut + _LONGEST])
        marks = _plain(line[cut : first - 1])
        marked = _plain(line[max(first - 1, cut) : min(last - 1, cut + _LONGEST)])
        result.append((str(row), text, " " * _width(marks) + "^" * max(1, _width(marked))))
    return result


def _plain(text: str) -> str:
    """Tabs as blanks, and nothing that a terminal would take for an order."""
    text = text.expandtabs(4)
    return text if text.isprintable() else "".join(c if c.isprintable() else shown(c) for c in text)


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    from unicodedata import east_asian_width

    return sum(2 if east_asian_width(char) in "WF" else 1 for char in text)
