"""Files that npumigrate is given, mutated a little; ``benchmarks/fuzz.py`` does it for longer."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.fuzzing.settings_files import Kind, broken, changed, kinds

CASES = 30


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.file)
def test_a_file_is_read_or_refused(kind: Kind, tmp_path: Path) -> None:
    for start in kind.starts:
        assert broken(kind, start.encode(), tmp_path) == "", start
    for seed in range(CASES):
        random = Random(seed)
        data = changed(kind, random.choice(kind.starts), random)
        assert broken(kind, data, tmp_path) == "", data
