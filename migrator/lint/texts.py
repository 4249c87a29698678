"""The files of a lint run as texts: their bytes, their lines, and places in the cells of notebooks."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Optional

from migrator.files.document import document, is_notebook
from migrator.files.errors import Unreadable
from migrator.files.source import lines_of, read_bytes
from migrator.lint.cells import in_cells
from migrator.lint.diagnostic import Diagnostic
from migrator.lint.files import Target


class Texts:
    """``given`` holds the content of files that are not read from the disk."""

    def __init__(self, given: Mapping[Path, bytes]) -> None:
        self.given = given
        self._changed: dict[Path, bytes] = {}
        self._shown: tuple[tuple[str, Optional[int]], list[str]] = ("", None), []

    def data(self, target: Target) -> bytes:
        """The bytes of a file as it was when the run began. Raises Unreadable."""
        given = self.given.get(target.place)
        return given if given is not None else read_bytes(target.place)

    def change(self, target: Target, data: bytes) -> None:
        """From now on the lines are those of a fixed file."""
        self._changed[target.place] = data
        self._shown = ("", None), []

    def placed(self, target: Target, found: list[Diagnostic]) -> list[Diagnostic]:
        """The findings with the places that a person sees: those in cells for a notebook."""
        if not found or not is_notebook(target.path):
            return found
        notebook = document(self.data(target), target.path).notebook
        return in_cells(notebook, found) if notebook else found

    def lines(self, item: Diagnostic) -> Sequence[str]:
        """The source lines of the file or cell that a finding lies in, empty where they are gone."""
        key = item.path, item.cell
        if self._shown[0] != key:
            place = Path(os.path.abspath(item.path))
            self._shown = key, _lines(item, place, self._changed.get(place, self.given.get(place)))
        return self._shown[1]

    def line(self, item: Diagnostic) -> str:
        """The source line in which a finding begins, without the blanks around it."""
        lines = self.lines(item)
        return lines[item.row - 1].strip() if item.row <= len(lines) else ""


def _lines(item: Diagnostic, place: Path, data: Optional[bytes]) -> list[str]:
    try:
        content = document(read_bytes(place) if data is None else data, item.path)
    except Unreadable:
        return []
    text = content.text
    if content.notebook is not None:
        text = next((cell.source for cell in content.notebook.cells if cell.number == item.cell), "")
    return lines_of(text)
