"""What a report shows of the files of a lint run: their lines, and the places of edits in them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Optional

from migrator.core.cells import PlacedEdit, placed_edits
from migrator.files.document import Document, document
from migrator.files.errors import Unreadable
from migrator.files.source import lines_of, read_bytes
from migrator.findings.finding import Finding


class Texts:
    """``contents`` are those of files that are not read from the disk. The last file shown is kept."""

    def __init__(self, contents: Mapping[Path, bytes]) -> None:
        self._contents = dict(contents)
        self._document = lru_cache(maxsize=1)(self._read)
        self._lines = lru_cache(maxsize=1)(self._split)

    def change(self, place: Path, data: bytes) -> None:
        """From now on the lines are those of a fixed file."""
        self._contents[place] = data
        self._document.cache_clear()
        self._lines.cache_clear()

    def lines(self, finding: Finding) -> Sequence[str]:
        """The source lines of the file or cell that a finding lies in, empty where they are gone."""
        return self._lines(finding.file, finding.cell)

    def edits(self, finding: Finding) -> Sequence[PlacedEdit]:
        """The edits of a finding's fix with lines and columns; none where the file is gone."""
        item = self._document(finding.file)
        return placed_edits(item, item.lines, finding.fix) if item and finding.fix else []

    def _read(self, file: str) -> Optional[Document]:
        place = Path(os.path.abspath(file))
        data = self._contents.get(place)
        try:
            return document(read_bytes(place) if data is None else data, file)
        except Unreadable:
            return None

    def _split(self, file: str, number: Optional[int]) -> list[str]:
        item = self._document(file)
        if item is None:
            return []
        if item.notebook is None:
            return lines_of(item.text)
        return lines_of(next((cell.source for cell in item.notebook.cells if cell.number == number), ""))
