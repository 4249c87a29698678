"""What conversions say and write: the texts and the functions in ``reports/distributed``."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from typing import Any

import yaml

from migrator.data_folders import data_folder
from migrator.findings.finding import Severity


@dataclass(frozen=True)
class Text:
    """A message, what a person does about it, and how grave it is."""

    message: str
    advice: str
    severity: Severity = "warning"


def text(key: str, **values: object) -> Text:
    """One of the texts, with values in it."""
    found = read("texts.yaml")[key]
    message, advice = (found[part].format_map(values) for part in ("message", "advice"))
    return Text(message, advice, found.get("severity", "warning"))


@cache
def read(file: str) -> Any:
    """The tables of a file."""
    return yaml.safe_load((data_folder("reports") / "distributed" / file).read_text(encoding="utf-8"))


@cache
def functions(file: str) -> dict[str, str]:
    """The sources of a file's functions and classes by their names, in the order of the file."""
    source = (data_folder("reports") / "distributed" / file).read_text(encoding="utf-8")
    lines = source.splitlines()
    return {
        node.name: "\n".join(lines[node.lineno - 1 : node.end_lineno]) + "\n"
        for node in ast.parse(source).body
        if isinstance(node, (ast.FunctionDef, ast.ClassDef))
    }
