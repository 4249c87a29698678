"""Where the three data folders are, and what the YAML files of one hold."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from migrator.language import UserError

_PACKAGE = Path(__file__).resolve().parent


class NoFolderError(UserError, FileNotFoundError):
    """A folder of npumigrate is missing."""


def data_folder(name: str) -> Path:
    """The folder ``rules``, ``api_db`` or ``reports``.

    In an installed wheel it lies inside the package (``migrator/data/``), in a
    checkout beside it. Raises NoFolderError where neither is there.
    """
    for folder in (_PACKAGE / "data" / name, _PACKAGE.parent / name):
        if folder.is_dir():
            return folder
    raise NoFolderError("npumigrate is installed without its folder {name}/: install it again", name=name)


@cache
def reports_yaml(path: str) -> Any:
    """What a YAML file of ``reports/`` holds; it is read once, and nobody changes it."""
    import yaml

    text = (data_folder("reports") / path).read_bytes()
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # nosec B506 # ten times as fast
