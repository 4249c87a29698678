"""What a process is told about one file to check."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Optional


@dataclass(frozen=True)
class RuleSet:
    """What decides which findings there are, beside the files themselves.

    ``content`` is a digest of the rule packs ``rules``.
    ``mentioned`` are the codes of per-file-ignores: they are checked with the rest.
    With ``noqa`` off, comments suppress nothing.
    """

    version: str
    select: tuple[str, ...]
    ignore: tuple[str, ...]
    rules: tuple[str, ...]
    content: str = ""
    mentioned: tuple[str, ...] = ()
    noqa: bool = True
    hardware: str = ""


@dataclass(frozen=True)
class Job:
    """One file: how the user spells it, where it lies, and its name inside the project.

    ``ignored`` are the codes, or beginnings of codes, that do not count in it;
    ``data`` its content where that is not read from the disk.
    """

    path: str
    place: Path
    name: str
    rules: RuleSet
    ignored: tuple[str, ...]
    data: Optional[bytes] = None
