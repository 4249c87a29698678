"""The loop of a repair: a change that does not help is taken back, none is tried twice, and it ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.verify.diagnosis import Failure, Frame
from migrator.verify.processes import Ended
from migrator.verify.repair.loop import MOST_ROUNDS, repair
from migrator.verify.repair.record import record
from migrator.verify.verdict import FAILED, INTERRUPTED, PASSED, Course, Shares, Verdict

TRAIN = "place = input()\nnet.to(place)\n"


def verdict(folder: Path, outcome: str = FAILED, line: int = 2) -> Verdict:
    source = (folder / "train.py").read_text().splitlines()[line - 1]
    seen = ({"expression": "place", "kind": "str", "value": "cuda"},)
    frame = Frame(str(folder / "train.py"), line, -1, line, -1, "<module>", source, seen)
    text = "Torch not compiled with CUDA enabled"
    failure = Failure(1, None, "AssertionError", ("AssertionError", "Exception"), text, (frame,))
    failures = () if outcome == PASSED else (failure,)
    ended = Ended(0 if outcome == PASSED else 1, 1.0, interrupted=outcome == INTERRUPTED)
    return Verdict(outcome, (), ended, (), Shares(None, None, ""), (), 0, None, course=Course(failures))


def test_what_does_not_help_is_taken_back_and_not_tried_again(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    seen: list[str] = []

    def run() -> Verdict:
        seen.append((tmp_path / "train.py").read_text())
        return verdict(tmp_path, line=2)

    done = repair(tmp_path, run, print)
    assert (tmp_path / "train.py").read_text() == TRAIN
    assert [each.kept for each in done.rounds] == [False] * len(done.rounds)
    assert 1 <= len(done.rounds) < MOST_ROUNDS
    assert len(set(seen)) == len(seen)  # the first run, and each change once
    assert len(done.left) == 5


def test_what_helps_stays(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    outcomes = iter([FAILED, PASSED])
    done = repair(tmp_path, lambda: verdict(tmp_path, next(outcomes)), print)
    assert [each.kept for each in done.rounds] == [True]
    assert (tmp_path / "train.py").read_text().startswith('place = str(input()).replace("cuda", "npu")\n')
    assert "+place = str(input())" in done.rounds[0].diff
    assert done.left == ()


def test_what_a_terminal_would_obey_is_shown_in_the_reports(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN.replace("input()", "input('\x1b[31m')"))
    outcomes = iter([FAILED, PASSED])
    record(tmp_path, repair(tmp_path, lambda: verdict(tmp_path, next(outcomes)), print))
    rows = (tmp_path / "change_list.csv").read_text()
    assert "[31m" in rows
    assert "\x1b" not in rows


@pytest.mark.parametrize("first", [FAILED, INTERRUPTED])
def test_an_interrupted_run_leaves_no_change_that_was_not_tried(tmp_path: Path, first: str) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    outcomes = iter([first, INTERRUPTED])
    done = repair(tmp_path, lambda: verdict(tmp_path, next(outcomes)), print)
    assert (tmp_path / "train.py").read_text() == TRAIN
    assert not done.kept
    assert done.left == ()
