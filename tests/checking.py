"""Helpers for tests that check single texts."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from migrator.core.check import check, no_fix, safe_fixes
from migrator.core.rules import Rules
from migrator.data_folders import data_folder
from migrator.files.document import Document, file_type, tells_type, type_of_start
from migrator.files.source import Source
from migrator.findings.finding import Result
from migrator.matchers.packs import Rule, load, load_all
from migrator.project.project import Project


@cache
def every_rule() -> tuple[Rule[Any], ...]:
    """All rules of ours, read once a process."""
    return tuple(load_all(load=load_pack))


_load_once = cache(load)


def load_pack(path: Path) -> list[Rule[Any]]:
    """The rules of a pack; those of the project are read once in a process."""
    return _load_once(path) if data_folder("rules") in path.parents else load(path)


def document(name: str, text: str) -> Document:
    data = text.encode("utf-8", "surrogatepass")
    kind = file_type(name) or (type_of_start(name, data) if tells_type(name) else "")
    return Document(data, Source(name, text, type=kind))


def migrate_text(rules: Rules, name: str, text: str, project: Project, safe_only: bool = False) -> Result:
    """The text with all fixes, or the safe ones."""
    item = document(name, text)
    return check(item, rules, project, safe_fixes) if safe_only else check(item, rules, project)


def inspect_text(rules: Rules, name: str, text: str, project: Project) -> Result:
    """What is found in the text as it is."""
    return check(document(name, text), rules, project, no_fix, write=False)


def check_text(rules: Rules, name: str, text: str, project: Project) -> Result:
    """What lint would report."""
    return check(document(name, text), rules, project, write=False)
