"""A file that is checked: Python, a notebook, or a text of another type; its name or ``#!`` line tells."""

from __future__ import annotations

import os
import re
from functools import cached_property
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Optional

from migrator.files.source import Lines, Source, decode, decode_other, encode
from migrator.light import Frozen

if TYPE_CHECKING:
    from migrator.files.notebook import Notebook

NOTEBOOK = ".ipynb"
PYTHON = (".py", ".pyi", ".pyw")
_SUFFIXES = {
    **dict.fromkeys((".sh", ".bash", ".zsh", ".slurm", ".sbatch", ".pbs"), "shell"),
    **dict.fromkeys((".yaml", ".yml"), "yaml"),
    **dict.fromkeys((".ini", ".cfg", ".properties", ".service"), "ini"),  # a unit of systemd, too
    ".pbtxt": "pbtxt",
    ".env": "env",
    ".json": "json",
    ".toml": "toml",
    ".dockerfile": "dockerfile",
    ".mk": "makefile",
}
_NAMES = {
    "npumigrate.toml": "",  # our own
    "dockerfile": "dockerfile",
    "containerfile": "dockerfile",
    "makefile": "makefile",
    "gnumakefile": "makefile",
    "pipfile": "toml",
    ".envrc": "shell",
    "slurm.conf": "shell",  # Kaldi's slurm.pl reads it: option gpu=* -p gpu --gres=gpu:$0
}
DOCUMENTS = {".md": "markdown", ".markdown": "markdown", ".rst": "rst"}
_PICTURES = (".png", ".svg", ".jpg", ".jpeg", ".gif", ".webp", ".pdf")
_OF_PIP = ("requirement", "constraint")
_LISTS = (".txt", ".in")
_CI_FOLDERS = frozenset({".github", ".circleci", ".buildkite"})
_CI_FILES = r"\.gitlab-ci.*|\.?azure-pipelines.*|\.travis\.ya?ml"
# A key of a yacs configuration, whose value is the word or the item behind it: train.py MODEL.DEVICE cuda.
YACS_KEY = re.compile(r"\A[A-Z][A-Z0-9_]*(?:\.[A-Z0-9_]+)+\Z")
_SHELL = re.compile(rb"#![^\n]*\b(?:ba|da|z|k)?sh\b")
START = 1024  # bytes that tell the type of a file whose name does not
# A line of pip's files, whatever their name; one of them has a version, or names another such file.
_PACKAGE = rb"\s*(?:#.*|--?[A-Za-z].*|[A-Za-z][\w.-]*(?:\[[\w, -]*\])?\s*(?:(?:[=<>~!]=|[<>@;]|\s#).*)?|[a-z+]+://.*)?"
_VERSION = rb"(?m)^[\w.-]+(?:\[[\w, -]*\])?\s*[=<>~!]=\s*\d|^-[rc] |^(?:numpy|torchvision)\s*$"


def is_notebook(name: str) -> bool:
    """Whether a file of this name, or path, is a notebook."""
    return os.path.splitext(name)[1].lower() == NOTEBOOK


class Document(Frozen):
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
        """Its type where it is not Python, see ``files.document``; else empty."""
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


def file_type(name: str) -> str:
    """The type that a file's name, or path, tells; empty for Python and for what is of no known type.

    ``shell``, ``env`` (lines ``NAME=value``), ``yaml``, ``json``, ``toml``, ``ini``, ``requirements``,
    ``dockerfile`` or ``makefile``.
    """
    *folders, base = name.lower().split("/")
    if base in _NAMES:
        return _NAMES[base]
    stem, suffix = os.path.splitext(base)
    if suffix in _LISTS and any(word in stem or f"{word}s" in folders for word in _OF_PIP):
        return "requirements"
    if base.startswith(("dockerfile.", "dockerfile-", "dockerfile_")) and suffix not in _PICTURES:
        return "dockerfile"
    if base == ".env" or base.startswith(".env."):
        return "env"
    return _SUFFIXES.get(suffix, "")


def document_type(name: str) -> str:
    """``markdown`` or ``rst`` for a document, whose blocks of shell are looked at where that is asked for."""
    return DOCUMENTS.get(os.path.splitext(name.lower())[1], "")


def tells_type(name: str) -> bool:
    """Whether the start of a file of this name tells its type, where the name alone does not."""
    return "." not in name or name.lower().endswith(_LISTS)


def type_of_start(name: str, data: bytes) -> str:
    """The type that the start of such a file tells: a ``#!`` line that of ``shell``; or lines of pip."""
    if _SHELL.match(data):
        return "shell"
    head = data[:START]
    head = head[: head.rfind(b"\n") + 1] if len(data) >= START else head
    is_list = name.lower().endswith(_LISTS) and ".egg-info/" not in name
    lists = is_list and re.search(_VERSION, head) is not None
    return "requirements" if lists and all(re.fullmatch(_PACKAGE, line) for line in head.splitlines()) else ""


def is_of_ci(name: str) -> bool:
    """Whether a file says what a CI system does, on machines of its own."""
    path = PurePosixPath(name)
    return not _CI_FOLDERS.isdisjoint(path.parts) or bool(re.fullmatch(_CI_FILES, path.name))


def document(data: bytes, name: str) -> Document:
    """The document of a file's bytes. Raises Unreadable."""
    if is_notebook(name):
        from migrator.files.notebook import read_notebook

        return Document(data, read_notebook(data, name))
    other = type_of(name, data)
    return Document(data, decode_other(data, name, other) if other else decode(data, name))


def type_of(name: str, data: bytes) -> str:
    """The type of a file other than Python, by its name, path or first line; else empty."""
    # A module may begin with the copied first line of a script.
    is_python = name.lower().endswith(PYTHON)
    return file_type(name) or document_type(name) or ("" if is_python else type_of_start(name, data))


def encoded(item: Document, text: str) -> bytes:
    """The bytes of the file with a new version of its text. Raises Unreadable where there are none."""
    if isinstance(item.content, Source):
        return encode(item.content, text)
    from migrator.files.notebook import encode_notebook

    return encode_notebook(item.content, text)
