"""The files of a lint run: their bytes, and what a report shows of them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from migrator.core.cells import PlacedEdit, placed_edits
from migrator.files.document import Document, document
from migrator.files.errors import Unreadable
from migrator.files.lines import Lines
from migrator.files.source import lines_of, read_bytes
from migrator.findings.finding import Finding
from migrator.lint.files import Target


class Texts:
    """``given`` holds the content of files that are not read from the disk."""

    def __init__(self, given: Mapping[Path, bytes]) -> None:
        self.given = given
        self._changed: dict[Path, bytes] = {}
        self._last: tuple[str, Document | None] = "", None
        self._lines: Lines | None = None  # of that document
        self._shown: tuple[tuple[str, int | None], list[str]] = ("", None), []

    def data(self, target: Target) -> bytes:
        """The bytes of a file as it was when the run began. Raises Unreadable."""
        given = self.given.get(target.place)
        return given if given is not None else read_bytes(target.place)

    def change(self, target: Target, data: bytes) -> None:
        """From now on the lines are those of a fixed file."""
        self._changed[target.place] = data
        self._last = "", None
        self._shown = ("", None), []

    def lines(self, finding: Finding) -> Sequence[str]:
        """The source lines of the file or cell that a finding lies in, empty where they are gone."""
        key = finding.file, finding.cell
        if self._shown[0] != key:
            item = self._document(finding.file)
            cells = item.notebook.cells if item and item.notebook else ()
            text = item.text if item else ""
            if cells:
                text = next((cell.source for cell in cells if cell.number == finding.cell), "")
            self._shown = key, lines_of(text) if item else []
        return self._shown[1]

    def line(self, finding: Finding) -> str:
        """The source line in which a finding begins, without the blanks around it."""
        lines = self.lines(finding)
        return lines[finding.line - 1].strip() if finding.line <= len(lines) else ""

    def edits(self, finding: Finding) -> Sequence[PlacedEdit]:
        """The edits of a finding's fix with lines and columns; none where the file is gone."""
        item = self._document(finding.file)
        if item is None or finding.fix is None:
            return []
        if self._lines is None:
            self._lines = Lines(item.text)
        return placed_edits(item, self._lines, finding.fix)

    def _document(self, file: str) -> Document | None:
        if self._last[0] != file or self._last[1] is None:
            self._lines = None
            place = Path(os.path.abspath(file))
            data = self._changed.get(place, self.given.get(place))
            try:
                self._last = file, document(read_bytes(place) if data is None else data, file)
            except Unreadable:
                self._last = file, None
        return self._last[1]
