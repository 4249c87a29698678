"""Real projects, migrated: no file is broken, only reported lines change, the result settles.

The rows of a report make each result: After in the place of Before.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from benchmarks.projects import PROJECTS, Project, fetch
from migrator.core.rules import Rules
from migrator.core.settings import Settings
from migrator.files.errors import Unreadable
from migrator.files.source import decode, encode, read
from migrator.project.facts import scan_file
from migrator.project.project import merge_facts
from tests.checking import migrate_text
from tests.core.test_change_rows import check_rows
from tests.fuzzing.properties import lost_lines, reported_lines

DAILY = ("ultralytics", "basicsr", "open_clip_torch")  # the others take half a minute each


@pytest.mark.parametrize(
    "project",
    [
        pytest.param(each, id=each.name, marks=() if each.name in DAILY else pytest.mark.thorough)
        for each in PROJECTS
    ],
)
def test_project(project: Project) -> None:
    root = fetch(project)
    engine = Rules(Settings(version="2.6"))
    texts = dict(_texts(root))
    facts = merge_facts(scan_file(name, text) for name, text in texts.items())
    results = {name: migrate_text(engine, name, text, facts) for name, text in texts.items()}
    skipped = {name: result.skipped for name, result in results.items() if result.skipped}
    assert skipped == {}
    migrated = {name: result.text for name, result in results.items() if result.text is not None}
    assert migrated, "a CUDA project changes"
    assert sum(check_rows(texts[name], result) for name, result in results.items()) >= 20
    new_texts = {**texts, **migrated}
    new_facts = merge_facts(scan_file(name, text) for name, text in new_texts.items())
    for name, text in migrated.items():
        ast.parse(text)
        assert lost_lines(texts[name], text, reported_lines(results[name])) == [], name
        again = migrate_text(engine, name, text, new_facts)
        assert again.text is None, f"{name}: a second migration changes the result"


def _texts(root: Path) -> list[tuple[str, str]]:
    texts = []
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).as_posix()
        try:
            source = read(path, name)
        except Unreadable:
            continue
        data = path.read_bytes()
        assert encode(decode(data, name), source.text) == data
        texts.append((name, source.text))
    return texts
