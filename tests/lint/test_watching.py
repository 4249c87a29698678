"""--watch, and how far a run is, as its progress bar is told."""

from __future__ import annotations

import os
import time

import pytest

from migrator.cli.lint import command_line
from migrator.lint import run
from tests.reading import write


@pytest.fixture
def steps(monkeypatch):
    """Functions that are called in place of the pauses, one after the other; then Ctrl-C."""
    waiting: list = []

    def pause(seconds: float) -> None:
        if not waiting:
            raise KeyboardInterrupt
        waiting.pop(0)()

    monkeypatch.setattr(run.time, "sleep", pause)
    assert run.time is time
    return waiting


def test_a_change_is_linted_and_nothing_else_is(lint, train, tmp_path, steps) -> None:
    def change() -> None:
        train.write_text("import torch\ntorch.cuda.init()\n# and a remark\n")

    steps += [lambda: None, change, lambda: None]
    answer = lint("--watch", "--output-format=concise", "--select=NPU101")
    assert answer.code == 130
    assert answer.out.count("Found 1 finding.") == 2
    assert "train.py:4:1" in answer.out.split("Found 1 finding.")[0]
    assert "train.py:2:1" in answer.out.split("Found 1 finding.")[1]


def test_new_files_and_a_configuration_that_breaks_are_seen(lint, train, tmp_path, steps) -> None:
    file = tmp_path / "npumigrate.toml"
    steps += [
        lambda: (tmp_path / "new.py").write_text("import torch\ntorch.cuda.init()\n"),
        lambda: file.write_text("selct = []\n"),
        lambda: file.write_text('select = ["NPU111"]\n'),
        lambda: os.remove(file),
    ]
    answer = lint("--watch", "--output-format=concise")
    assert [line for line in answer.out.splitlines() if line.startswith("Found")] == [
        "Found 3 findings.",
        "Found 5 findings.",
        "Found 1 finding.",
        "Found 5 findings.",
    ]
    assert answer.err.splitlines()[0].endswith("unknown key 'selct'; did you mean 'select'?")


def test_what_else_decides_is_seen(lint, train, tmp_path, steps) -> None:
    write(tmp_path, {"sub/new.py": "import torch\ntorch.cuda.init()\n"})
    known = tmp_path / "known.json"
    lint("--write-baseline", known)
    text = known.read_text()
    known.write_text('{"format": 1, "files": {}}')
    steps += [
        lambda: (tmp_path / ".gitignore").write_text("new.py\n"),
        lambda: known.write_text(text),
        lambda: os.remove(tmp_path / ".gitignore"),
        lambda: known.write_text('{"format": 1, "files": {}}'),
        lambda: (tmp_path / "sub" / "npumigrate.toml").write_text('select = ["NPU101"]\n'),
    ]
    answer = lint("--watch", "--output-format=concise", "--baseline", known)
    assert [line for line in answer.out.splitlines() if line[:5] in ("Found", "All c")] == [
        "Found 5 findings.",
        "Found 3 findings.",
        "All checks passed!",
        "All checks passed!",
        "Found 5 findings.",
        "Found 4 findings.",
    ]


def test_fixes_do_not_start_another_run(lint, train, steps) -> None:
    steps += [lambda: None, lambda: None]
    assert lint("--watch", "--fix").out.count("Found 3 findings (3 fixed") == 1


def test_the_standard_input_cannot_be_watched(lint) -> None:
    answer = lint("--watch", "-", stdin="")
    assert (answer.code, answer.err.count("\n")) == (2, 1)


def test_each_stage_ends_so_that_its_bar_goes_away_before_something_is_printed(train, monkeypatch) -> None:
    (train.parent / "other.py").write_text("import torch\n")
    monkeypatch.chdir(train.parent)
    steps: list[tuple[str, int, int]] = []
    line = command_line(["--silent", "--jobs=1"])
    for cached in (False, True):
        assert run.lint_once(line, lambda *step: steps.append(step)) == run.FOUND
        wanted = [("reading", number, 2) for number in range(3)]
        assert steps == (wanted if cached else [*wanted, ("linting", 1, 2), ("linting", 2, 2)])
        steps.clear()
