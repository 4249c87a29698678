"""A file that is checked: a Python text, a notebook, or a text of another known type."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Optional

from migrator.files.file_types import document_type, file_type, starts_as_shell
from migrator.files.lines import Lines
from migrator.files.source import Source, decode, decode_other, encode

if TYPE_CHECKING:
    from migrator.files.notebook import Notebook

NOTEBOOK = ".ipynb"


def is_notebook(name: str) -> bool:
    """Whether a file of this name, or path, is a notebook."""
    return os.path.splitext(name)[1].lower() == NOTEBOOK


@dataclass(frozen=True)
class Document:
    """``text`` is what is checked; ``data`` the bytes of the file, empty for what only an editor has."""

    data: bytes
    content: Source | Notebook

    @property
    def name(self) -> str:
        """Its name inside the project."""
        return self.content.name

    @property
    def text(self) -> str:
        """What is checked: the Python in it, or all of a text of another type."""
        return self.content.text

    @property
    def type(self) -> str:
        """Its type where it is no Python, see ``files.file_types``; else empty."""
        return self.content.type if isinstance(self.content, Source) else ""

    @cached_property
    def lines(self) -> Lines:
        """The places in the text."""
        content = self.content
        is_plain = isinstance(content, Source) and content.encoding == "utf-8" and not content.bom
        return Lines(self.text, (self.data or None) if is_plain else None)

    @property
    def notebook(self) -> Optional[Notebook]:
        """The notebook, None for a Python file."""
        return None if isinstance(self.content, Source) else self.content


def document(data: bytes, name: str) -> Document:
    """The document of a file's bytes. Raises Unreadable."""
    if is_notebook(name):
        from migrator.files.notebook import read_notebook

        return Document(data, read_notebook(data, name))
    other = type_of(name, data)
    return Document(data, decode_other(data, name, other) if other else decode(data, name))


def type_of(name: str, data: bytes) -> str:
    """The type of a file where it is no Python, by its name, path or first line; else empty."""
    return file_type(name) or document_type(name) or ("shell" if starts_as_shell(data) else "")


def encoded(item: Document, text: str) -> bytes:
    """The bytes of the file with a new version of its text. Raises Unreadable where there are none."""
    if isinstance(item.content, Source):
        return encode(item.content, text)
    from migrator.files.notebook import encode_notebook

    return encode_notebook(item.content, text)
