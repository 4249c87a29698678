"""The columns of the CSV reports, from ``reports/columns.yaml``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from migrator.data_folders import reports_yaml


@dataclass(frozen=True)
class Column:
    """One column: its heading, the name of the value below it, and what that is."""

    name: str
    value: str
    about: str


@dataclass(frozen=True)
class Table:
    """One CSV report: its file name, what a row is, and its columns from left to right.

    ``runs`` are the commands and analysis modes that write it. ``codes`` are beginnings of rule
    codes: where there are some, the table lists what these rules find and do not change.
    """

    name: str
    row: str
    columns: tuple[Column, ...]
    runs: tuple[str, ...]
    codes: tuple[str, ...] = ()


@cache
def tables_of(runs: tuple[str, ...]) -> dict[str, Table]:
    """The CSV reports that these commands or analysis modes write."""
    return {name: table for name, table in load_tables().items() if set(runs).intersection(table.runs)}


@cache
def load_tables() -> dict[str, Table]:
    """Every CSV report by its file name."""
    return {
        name: Table(
            name,
            entry["row"],
            tuple(Column(**each) for each in entry["columns"]),
            tuple(entry["runs"]),
            tuple(entry.get("codes", ())),
        )
        for name, entry in reports_yaml("columns.yaml").items()
    }
