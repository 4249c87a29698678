"""Helpers for tests of the engine."""

from __future__ import annotations

from functools import cache
from typing import Any

from migrator.core.rules import Rules
from migrator.core.settings import Settings
from migrator.findings.finding import Result
from migrator.project.facts import scan_file
from migrator.project.project import merge_facts
from tests.checking import load_pack, migrate_text


@cache
def engine(version: str, **settings: Any) -> Rules:
    return Rules(Settings(version=version, **settings), load_pack)


def migrate(
    text: str, version: str = "2.6", others: tuple[str, ...] = (), safe_only: bool = False, **settings: Any
) -> Result:
    """Migrate one text, as a file of a project that also has the texts ``others``."""
    facts = [scan_file("example.py", text)]
    facts += [scan_file(f"other{place}.py", other) for place, other in enumerate(others)]
    return migrate_text(engine(version, **settings), "example.py", text, merge_facts(facts), safe_only)


def migrated(text: str, version: str = "2.6", others: tuple[str, ...] = (), **settings: Any) -> str:
    """The migrated text, or the text itself where nothing changed. Checks that it settles."""
    result = migrate(text, version, others, **settings)
    assert result.skipped == ""
    if result.text is None:
        return text
    assert migrate(result.text, version, **settings).text is None, "a second migration changes the result"
    return result.text
