"""The folder that an agent may ask about."""

from __future__ import annotations

import os
from pathlib import Path

from migrator.files.errors import shown

LARGEST = 1_000_000  # characters of a text, bytes of a file


class Refused(ValueError):  # noqa: N818 - it says what became of a request
    """What a tool does not look at; its text is the agent's line."""


def place_in(workspace: Path, path: str) -> Path:
    """Where a path, relative to the workspace or absolute, leads to. Raises Refused for what lies outside."""
    try:
        place = Path(os.path.realpath(workspace / path))
    except ValueError:  # a NUL byte
        raise Refused(f"no path: {path!r}") from None
    if not place.is_relative_to(workspace):
        raise Refused(f"{shown(path)} lies outside of the workspace {shown(workspace)}")
    return place


def existing(workspace: Path, path: str) -> Path:
    """A file of no more than LARGEST bytes, or a folder, of the workspace. Raises Refused."""
    place = place_in(workspace, path)
    if place.is_file():
        if place.stat().st_size > LARGEST:
            raise Refused(f"{shown(path)} has more than {LARGEST:,} bytes")
    elif not place.is_dir():
        raise Refused(f"no such file or folder in the workspace: {shown(path)}")
    return place


def name_in(workspace: Path, file: str) -> str:
    """The name of a file inside the workspace; empty where it, or what it links to, lies outside."""
    inside = Path(os.path.realpath(file)).is_relative_to(workspace)
    return os.path.relpath(file, workspace).replace(os.sep, "/") if inside else ""
