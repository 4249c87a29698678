"""Helpers for tests of the engine."""

from __future__ import annotations

from functools import cache
from typing import Any

from migrator.core.engine import Engine, merge_facts, scan_file
from migrator.core.settings import Settings
from migrator.findings.finding import FileResult


@cache
def engine(version: str, **settings: Any) -> Engine:
    return Engine(Settings(version=version, **settings))


def migrate(text: str, version: str = "2.6", others: tuple[str, ...] = (), **settings: Any) -> FileResult:
    """Migrate one text, as a file of a project that also has the texts ``others``."""
    facts = [scan_file("example.py", text)]
    facts += [scan_file(f"other{place}.py", other) for place, other in enumerate(others)]
    return engine(version, **settings).migrate_text("example.py", text, merge_facts(facts))


def migrated(text: str, version: str = "2.6", others: tuple[str, ...] = (), **settings: Any) -> str:
    """The migrated text, or the text itself where nothing changed. Checks that it settles."""
    result = migrate(text, version, others, **settings)
    assert result.skipped == ""
    if result.text is None:
        return text
    assert migrate(result.text, version, **settings).text is None, "a second migration changes the result"
    return result.text
