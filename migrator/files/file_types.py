"""The type of a file that is no Python, by its name or its ``#!`` line."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

_SUFFIXES = {
    **dict.fromkeys((".sh", ".bash", ".zsh", ".slurm", ".sbatch", ".pbs"), "shell"),
    **dict.fromkeys((".yaml", ".yml"), "yaml"),
    **dict.fromkeys((".ini", ".cfg"), "ini"),
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
}
DOCUMENTS = {".md": "markdown", ".markdown": "markdown", ".rst": "rst"}
_OF_PIP = ("requirement", "constraint")
_CI_FOLDERS = frozenset({".github", ".circleci", ".buildkite"})
_CI_FILES = r"\.gitlab-ci.*|\.?azure-pipelines.*|\.travis\.ya?ml"
# A key of a yacs configuration, whose value is the word or the item behind it: train.py MODEL.DEVICE cuda.
YACS_KEY = re.compile(r"\A[A-Z][A-Z0-9_]*(?:\.[A-Z0-9_]+)+\Z")
_SHELL = re.compile(rb"#![^\n]*\b(?:ba|da|z|k)?sh\b")


def file_type(name: str) -> str:
    """The type that a file's name, or path, tells; empty for Python and for what is of no known type.

    ``shell``, ``env`` (lines ``NAME=value``), ``yaml``, ``json``, ``toml``, ``ini``, ``requirements``,
    ``dockerfile`` or ``makefile``.
    """
    path = PurePosixPath(name.lower())
    if path.name in _NAMES:
        return _NAMES[path.name]
    of_pip = any(word in path.stem or f"{word}s" in path.parts for word in _OF_PIP)
    if of_pip and path.suffix in (".txt", ".in"):
        return "requirements"
    if path.name.startswith(("dockerfile.", "dockerfile-", "dockerfile_")):
        return "dockerfile"
    if path.name == ".env" or path.name.startswith(".env."):
        return "env"
    return _SUFFIXES.get(path.suffix, "")


def document_type(name: str) -> str:
    """``markdown`` or ``rst`` for a document, whose blocks of shell are looked at where that is asked for."""
    return DOCUMENTS.get(PurePosixPath(name.lower()).suffix, "")


def starts_as_shell(data: bytes) -> bool:
    """Whether the first line of a file names a shell as what runs it."""
    return _SHELL.match(data) is not None


def is_of_ci(name: str) -> bool:
    """Whether a file says what a CI system does, on machines of its own."""
    path = PurePosixPath(name)
    return not _CI_FOLDERS.isdisjoint(path.parts) or bool(re.fullmatch(_CI_FILES, path.name))
