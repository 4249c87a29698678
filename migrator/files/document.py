"""A file with Python in it: a Python text, or a notebook."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Optional

from migrator.files.lines import Lines
from migrator.files.source import Source, decode, encode

if TYPE_CHECKING:
    from migrator.files.notebook import Notebook

NOTEBOOK = ".ipynb"


def is_notebook(name: str) -> bool:
    """Whether a file of this name, or path, is a notebook."""
    return os.path.splitext(name)[1].lower() == NOTEBOOK


@dataclass(frozen=True)
class Document:
    """``text`` is what is checked; ``data`` the bytes of the file."""

    data: bytes
    content: Source | Notebook

    @property
    def name(self) -> str:
        """Its name inside the project."""
        return self.content.name

    @property
    def text(self) -> str:
        """The Python in it."""
        return self.content.text

    @cached_property
    def lines(self) -> Lines:
        """The places in the text."""
        return Lines(self.text)

    @property
    def notebook(self) -> Optional[Notebook]:
        """The notebook, None for a Python file."""
        return None if isinstance(self.content, Source) else self.content


def document(data: bytes, name: str) -> Document:
    """The document of a file's bytes. Raises Unreadable."""
    if is_notebook(name):
        from migrator.files.notebook import read_notebook

        return Document(data, read_notebook(data, name))
    return Document(data, decode(data, name))


def encoded(item: Document, text: str) -> bytes:
    """The bytes of the file with a new version of its text. Raises Unreadable where there are none."""
    if isinstance(item.content, Source):
        return encode(item.content, text)
    from migrator.files.notebook import encode_notebook

    return encode_notebook(item.content, text)
