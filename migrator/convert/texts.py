"""What conversions say and write: the texts and the functions in ``reports/distributed``."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from migrator.data_folders import data_folder, reports_yaml
from migrator.findings.finding import Severity
from migrator.language import _
from migrator.names.tree import parse, walk

_RANKS = "ranks.py"


@dataclass(frozen=True)
class Text:
    """A message, what a person does about it, and how grave it is."""

    message: str
    advice: str
    severity: Severity = "warning"


def text(key: str, **values: object) -> Text:
    """One of the texts, with values in it."""
    found = reports_yaml("distributed/texts.yaml")[key]
    message, advice = (_(found[part]).format_map(values) for part in ("message", "advice"))
    return Text(message, advice, found.get("severity", "warning"))


@cache
def functions(file: str) -> dict[str, str]:
    """The sources of a file's functions and classes by their names, in the order of the file.

    Those of ``ranks.py``, which all conversions share, come before.
    """
    shared = {} if file == _RANKS else functions(_RANKS)
    source = (data_folder("reports") / "distributed" / file).read_text(encoding="utf-8")
    lines = source.splitlines()
    own = {
        node.name: "\n".join(lines[node.lineno - 1 : node.end_lineno]) + "\n"
        for node in ast.parse(source).body
        if isinstance(node, (ast.FunctionDef, ast.ClassDef))
    }
    return {**shared, **own}


def sources(file: str, names: Iterable[str]) -> str:
    """The sources of some of a file's functions, with those that they use."""
    every = functions(file)
    wanted: set[str] = set()
    waiting = [name for name in names if name in every]
    while waiting:
        name = waiting.pop()
        if name not in wanted:
            wanted.add(name)
            waiting += [word for word in names_in(every[name]) if word in every]
    return "\n\n".join(text for name, text in every.items() if name in wanted)


def names_in(code: str) -> set[str]:
    """The bare names that stand in code. Raises what parsing does."""
    return {node.id for node in walk(parse(code)) if isinstance(node, ast.Name)}
