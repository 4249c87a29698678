"""How far a run of lint is, as its progress bar is told."""

from __future__ import annotations

from migrator.cli.lint import command_line
from migrator.lint.run import FOUND, lint_once


def test_each_stage_ends_so_that_its_bar_goes_away_before_something_is_printed(train, monkeypatch) -> None:
    (train.parent / "other.py").write_text("import torch\n")
    monkeypatch.chdir(train.parent)
    steps: list[tuple[str, int, int]] = []
    line = command_line(["--silent", "--jobs=1"])
    for cached in (False, True):
        assert lint_once(line, lambda *step: steps.append(step)) == FOUND
        wanted = [("reading", number, 2) for number in range(3)]
        assert steps == (wanted if cached else [*wanted, ("linting", 1, 2), ("linting", 2, 2)])
        steps.clear()
