"""Mutations of the rules' own examples; ``benchmarks/fuzz.py`` does it for longer, with real files."""

from __future__ import annotations

import zlib
from pathlib import Path
from random import Random

import pytest

from migrator.core.rules import rules_for
from migrator.core.settings import Settings
from tests.checking import every_rule
from tests.fuzzing.mutations import encoded, mutated
from tests.fuzzing.properties import broken
from tests.fuzzing.recorded_files import kinds as recorded_kinds
from tests.fuzzing.settings_files import Kind, changed, kinds
from tests.fuzzing.settings_files import broken as broken_setting

EXAMPLES = [
    (example.get("file", "example.py"), example[key])
    for rule in every_rule()
    for example in rule.examples
    for key in ("before", "unchanged")
    if key in example
]
PARTS = 4  # a fourth of the examples is enough for every day


@pytest.mark.parametrize("part", range(PARTS))
def test_mutations_of_examples(part: int) -> None:
    """Each example has a seed of its own, so that a new rule adds a case and changes none."""
    rules = rules_for(Settings(version="2.6"))
    for name, text in EXAMPLES:
        seed = zlib.crc32(text.encode())
        if seed % (PARTS * 4) == part:
            python, random = name.endswith(".py"), Random(seed)
            data = encoded(mutated(text, python, random), python, random)
            assert broken(name, data, rules) == "", (name, data)


@pytest.mark.parametrize("cases", [8, pytest.param(60, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("kind", [*kinds(), *recorded_kinds()], ids=lambda kind: kind.file)
def test_a_file_is_read_or_refused(kind: Kind, cases: int, tmp_path: Path) -> None:
    for start in kind.starts:
        assert broken_setting(kind, start.encode(), tmp_path) == "", start
    for seed in range(cases):
        random = Random(seed)
        data = changed(kind, random.choice(kind.starts), random)
        assert broken_setting(kind, data, tmp_path) == "", data
