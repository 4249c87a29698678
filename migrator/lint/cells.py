"""Findings in a notebook's text with the places that a person sees: those in its cells."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from migrator.files.notebook import Notebook, cell_place, message_in_cell
from migrator.lint.diagnostic import Diagnostic, Position, TextEdit


def in_cells(notebook: Notebook, found: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Findings in the text of a notebook with the places that they have in the cells."""
    return [_in_cell(notebook, item) for item in found]


def _in_cell(notebook: Notebook, found: Diagnostic) -> Diagnostic:
    cell, row = cell_place(notebook, found.row)
    _, end_row = cell_place(notebook, found.end_row)
    noqa = cell_place(notebook, found.noqa_row)[1] if found.noqa_row is not None else None
    fix = found.fix and replace(found.fix, edits=tuple(_edit(notebook, edit) for edit in found.fix.edits))
    message = message_in_cell(notebook, found.message)
    return replace(found, cell=cell.number, row=row, end_row=end_row, noqa_row=noqa, fix=fix, message=message)


def _edit(notebook: Notebook, edit: TextEdit) -> TextEdit:
    cell, row = cell_place(notebook, edit.start.row)
    if row > cell.rows:  # below the last line, which has no line end of its own in a notebook
        last = Position(cell.rows, len(cell.source.rpartition("\n")[2]) + 1)
        return TextEdit(last, last, "\n" + edit.content.rstrip("\n"), cell.number)
    end = Position(cell_place(notebook, edit.end.row)[1], edit.end.column)
    return TextEdit(Position(row, edit.start.column), end, edit.content, cell.number)
