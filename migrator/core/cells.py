"""Findings in the text of a notebook, with the places that a person sees: those in its cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Optional

from migrator.files.document import Document
from migrator.files.source import Lines
from migrator.findings.finding import Finding, Fix, Place

if TYPE_CHECKING:
    from migrator.files.notebook import Notebook


def placed(document: Document, finding: Finding) -> Finding:
    """A finding with the lines of its cell; in a Python file as it is."""
    notebook = document.notebook
    if notebook is None:
        return finding
    from migrator.files.notebook import cell_place, message_in_cell, with_hidden

    cell, line = cell_place(notebook, finding.line)
    noqa, fix, end_line = finding.noqa_line, finding.fix, line + finding.end_line - finding.line
    if fix and fix.lines:
        (first, last), new = fix.lines, cell_place(notebook, fix.lines[0])[1]
        before, after = with_hidden(notebook, fix.before), with_hidden(notebook, fix.after)
        fix = fix._replace(lines=(new, new + last - first), before=before, after=after)
    message = message_in_cell(notebook, finding.message)
    noqa = None if noqa is None else cell_place(notebook, noqa)[1]
    found = finding._replace(fix=fix, cell=cell.number, line=line, end_line=end_line)
    return found._replace(message=message, noqa_line=noqa)


def first_line(document: Document, finding: Finding) -> int:
    """The line of the document's text that is the first of the finding's cell; 1 in a Python file."""
    if document.notebook is None:
        return 1
    return next(cell.first for cell in document.notebook.cells if cell.number == finding.cell)


class PlacedEdit(NamedTuple):
    """An edit with 1-based lines and columns, those of a notebook's ``cell`` where there is one."""

    start: Place
    end: Place
    text: str
    cell: Optional[int] = None


def placed_edits(document: Document, lines: Lines, fix: Fix) -> list[PlacedEdit]:
    """The edits of a fix, with its imports, as editors and other programs take them."""
    edits = [PlacedEdit(lines.place(e.start), lines.place(e.end), e.text) for e in fix.all_edits]
    notebook = document.notebook
    return edits if notebook is None else [_in_cell(notebook, edit) for edit in edits]


def _in_cell(notebook: Notebook, edit: PlacedEdit) -> PlacedEdit:
    from migrator.files.notebook import cell_place

    cell, line = cell_place(notebook, edit.start[0])
    if line > cell.rows:  # below the last line, which has no line end of its own in a notebook
        last = cell.rows, len(cell.source.rpartition("\n")[2]) + 1
        return PlacedEdit(last, last, "\n" + edit.text.rstrip("\n"), cell.number)
    end = cell_place(notebook, edit.end[0])[1], edit.end[1]
    return PlacedEdit((line, edit.start[1]), end, edit.text, cell.number)
