"""How often a run parses, indexes and compiles each text: once, whoever asks, but for what is named here."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from migrator.core import readable
from migrator.core.settings import Settings
from migrator.migrate.run import Plan, migrate
from migrator.names import outline
from migrator.names.index import ModuleIndex
from migrator.names.outline import Outline
from migrator.project import program_files

ROOT = Path(__file__).parents[2]


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> dict[str, Counter[str]]:
    """By what is done: how often with each text, in a process that knows none yet."""
    for module in (program_files, outline):
        monkeypatch.setattr(module, "_kept", {})
    monkeypatch.setattr(outline, "_size", 0)
    found: dict[str, Counter[str]] = {"parsed": Counter(), "indexed": Counter(), "compiled": Counter()}

    def count(owner: Any, name: str, kind: str, place: int) -> None:
        real = getattr(owner, name)

        def counted(*arguments: Any, **named: Any) -> Any:
            found[kind][arguments[place]] += 1
            return real(*arguments, **named)

        monkeypatch.setattr(owner, name, counted)

    count(Outline, "__init__", "parsed", 1)
    count(ModuleIndex, "__init__", "indexed", 1)
    count(readable, "_compiled", "compiled", 0)
    return found


def test_a_migration(tmp_path: Path, counts: dict[str, Counter[str]]) -> None:
    project = tmp_path / "samples"
    copytree(ROOT / "samples", project)
    (tmp_path / "out").mkdir()
    stages: dict[str, list[int]] = {}
    plan = Plan(project, Settings("2.6.0"), jobs=1)
    migrate(plan, tmp_path / "out", False, lambda stage, done, _: stages.setdefault(stage, []).append(done))
    assert [*stages] == ["reading", "scanning", "finding starts", "migrating", "comparing"]
    assert all(len(done) > 5 and done == sorted(done) for done in stages.values()), stages
    again = {kind: sum(texts.values()) - len(texts) for kind, texts in counts.items()}
    assert len(counts["parsed"]) > 10
    # What a script passes on is compared with programs and their results.
    assert again["parsed"] <= 2, [text[:60] for text, times in counts["parsed"].items() if times > 1]
    # What a file tells, what programs ask of it, and its check, each with words of its own, share one tree.
    assert again["indexed"] <= 8, [text[:60] for text, times in counts["indexed"].items() if times > 1]
    assert not again["compiled"]
