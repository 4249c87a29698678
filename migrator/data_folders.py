"""Where the three data folders are."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def data_folder(name: str) -> Path:
    """The folder ``rules``, ``api_db`` or ``reports``.

    In an installed wheel it lies inside the package (``migrator/data/``), in a
    checkout beside it. Raises FileNotFoundError where neither is there.
    """
    for folder in (_PACKAGE / "data" / name, _PACKAGE.parent / name):
        if folder.is_dir():
            return folder
    raise FileNotFoundError(f"npumigrate is installed without its folder {name}/: install it again")
