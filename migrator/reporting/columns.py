"""The columns of the CSV reports, from ``reports/columns.yaml``."""

from __future__ import annotations

from dataclasses import dataclass

import yaml

from migrator.data_folders import data_folder


@dataclass(frozen=True)
class Column:
    """One column: its heading, the name of the value below it, and what that is."""

    name: str
    value: str
    about: str


@dataclass(frozen=True)
class Table:
    """One CSV report: its file name, what a row is, and its columns from left to right."""

    name: str
    row: str
    columns: tuple[Column, ...]


def load_tables() -> dict[str, Table]:
    """Every CSV report by its file name."""
    text = (data_folder("reports") / "columns.yaml").read_text(encoding="utf-8")
    return {
        name: Table(name, entry["row"], tuple(Column(**column) for column in entry["columns"]))
        for name, entry in yaml.safe_load(text).items()
    }
