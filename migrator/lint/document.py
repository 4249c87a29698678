"""A file to lint: a Python text, or the Python of a notebook's cells."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Optional

from migrator.lint.diagnostic import Diagnostic, Position, TextEdit
from migrator.sources.source import Source, decode, encode

if TYPE_CHECKING:
    from migrator.sources.notebook import Notebook

NOTEBOOK = ".ipynb"


@dataclass(frozen=True)
class Document:
    """``text`` is what is checked; ``data`` the bytes of the file."""

    data: bytes
    content: Source | Notebook

    @property
    def text(self) -> str:
        """The Python in it."""
        return self.content.text

    @property
    def notebook(self) -> Optional[Notebook]:
        """The notebook, None for a Python file."""
        return None if isinstance(self.content, Source) else self.content


def document(data: bytes, name: str) -> Document:
    """The document of a file's bytes. Raises Unreadable."""
    if os.path.splitext(name)[1].lower() == NOTEBOOK:
        from migrator.sources.notebook import read_notebook

        return Document(data, read_notebook(data, name))
    return Document(data, decode(data, name))


def encoded(item: Document, text: str) -> bytes:
    """The bytes of the file with a new version of its text. Raises Unreadable where there are none."""
    if isinstance(item.content, Source):
        return encode(item.content, text)
    from migrator.sources.notebook import encode_notebook

    return encode_notebook(item.content, text)


def in_cells(notebook: Notebook, found: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Findings in the text of a notebook with the places that they have in the cells."""
    return [_in_cell(notebook, item) for item in found]


def _in_cell(notebook: Notebook, found: Diagnostic) -> Diagnostic:
    from migrator.sources.notebook import cell_place

    cell, row = cell_place(notebook, found.row)
    _, end_row = cell_place(notebook, found.end_row)
    noqa = cell_place(notebook, found.noqa_row)[1] if found.noqa_row is not None else None
    fix = found.fix and replace(found.fix, edits=tuple(_edit(notebook, edit) for edit in found.fix.edits))
    return replace(found, cell=cell.number, row=row, end_row=end_row, noqa_row=noqa, fix=fix)


def _edit(notebook: Notebook, edit: TextEdit) -> TextEdit:
    from migrator.sources.notebook import cell_place

    cell, row = cell_place(notebook, edit.start.row)
    if row > cell.rows:  # below the last line, which has no line end of its own in a notebook
        last = Position(cell.rows, len(cell.source.rpartition("\n")[2]) + 1)
        return TextEdit(last, last, "\n" + edit.content.rstrip("\n"), cell.number)
    end = Position(cell_place(notebook, edit.end.row)[1], edit.end.column)
    return TextEdit(Position(row, edit.start.column), end, edit.content, cell.number)
