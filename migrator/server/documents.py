"""The documents that an editor has open: a file's text, or the cells of a notebook."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from lsprotocol import types
from pygls.uris import to_fs_path

from migrator.core.cells import placed_edits
from migrator.files.document import Document as FileDocument
from migrator.files.document import type_of
from migrator.files.notebook import Notebook, of_cells
from migrator.files.source import Source
from migrator.findings.finding import Finding
from migrator.server.analysis import Analysis
from migrator.server.texts import Text

_FIRST_LINE = 256  # characters in which a #! line ends


@dataclass
class Part:
    """What has a URI and a message text: a file, or a code cell of a notebook."""

    uri: str
    version: Optional[int]
    text: Text


@dataclass
class Document:
    """An open document: one part, or the code cells of a ``notebook`` in their order.

    The number of a cell is its place among them, from 1 on.
    """

    uri: str
    place: Path
    parts: list[Part]
    notebook: bool = False
    analysis: Optional[Analysis] = None
    waiting: Optional[asyncio.Task[None]] = None

    def texts(self) -> list[Text]:
        """What it says now: equal lists are the same text."""
        return [part.text for part in self.parts]

    def content(self) -> Source | Notebook:
        """What is to be linted."""
        if not self.notebook:
            text, name = self.parts[0].text.text, str(self.place)
            start = text[:_FIRST_LINE].encode("utf-8", "replace")
            return Source(name, text, type=type_of(name, start))
        sources = [part.text.text for part in self.parts]
        cells = ((number, (0, 0), source) for number, source in enumerate(sources, 1))
        return of_cells(str(self.place), "\n".join(sources), cells)

    def number(self, part: Part) -> Optional[int]:
        """The number that findings have for a part: that of the cell, None in a file."""
        return self.parts.index(part) + 1 if self.notebook else None

    def part_of(self, cell: Optional[int]) -> Part:
        """The part with a number."""
        return self.parts[(cell or 1) - 1]

    def fix_edits(self, item: Finding) -> list[tuple[Part, types.TextEdit]]:
        """The edits of a finding's fix; those in a notebook may be in several cells."""
        found = []
        whole = FileDocument(b"", self.content())
        for edit in placed_edits(whole, whole.lines, item.fix) if item.fix else ():
            part = self.part_of(edit.cell)
            found.append((part, types.TextEdit(part.text.span(edit.start, edit.end), edit.text)))
        return found

    def edits_to(self, new: Iterable[tuple[Optional[int], str]]) -> list[tuple[Part, types.TextEdit]]:
        """The edits that give parts, by their numbers, a new text."""
        pairs = ((self.part_of(cell), text) for cell, text in new)
        return [(part, edit) for part, text in pairs for edit in part.text.edits_to(text)]


def whole_offset(content: Source | Notebook, cell: Optional[int], text: Text, offset: int) -> Optional[int]:
    """The index in all of a content's text of an index in one of its parts.

    None where the text has another line there: for a magic, and a cell in another language.
    """
    if isinstance(content, Source):
        return offset
    line, _ = text.position(offset)
    first = next(each.first for each in content.cells if each.number == cell)
    whole = Text(content.text)
    start = whole.index((first + line - 1, 1))
    line_start = text.index((line, 1))
    line_end = text.index((line + 1, 1))
    same = content.text.startswith(text.text[line_start:line_end].rstrip("\r\n"), start)
    return start + offset - line_start if same else None


def place_of(uri: str, otherwise: str) -> Path:
    """Where a document lies; what is not saved yet has another name in the current folder."""
    path = to_fs_path(uri)
    return Path(os.path.abspath(path if uri.startswith("file:") and path else otherwise))


def change_part(
    part: Part, version: Optional[int], changes: Iterable[types.TextDocumentContentChangeEvent]
) -> None:
    """Put what was typed into the text of a part."""
    for change in changes:
        part.text = part.text.changed(getattr(change, "range", None), change.text)
    part.version = version
