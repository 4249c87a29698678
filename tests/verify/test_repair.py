"""Runtime rules with their examples, rules that cannot be used, and what a repair keeps and takes back."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.core.rules import Rules
from migrator.core.settings import Settings
from migrator.findings.edits import apply
from migrator.matchers.packs import RuleError
from migrator.verify.diagnosis import Failure, Frame
from migrator.verify.processes import Ended
from migrator.verify.repair.fixes import FIXES, load, load_all
from migrator.verify.repair.loop import MOST_ROUNDS, record, repair
from migrator.verify.repair.site import Seen
from migrator.verify.verdict import FAILED, INTERRUPTED, PASSED, Course, Shares, Verdict

RULES = load_all()
EXAMPLES = {f"{rule.code}-{i}": (rule, each) for rule in RULES for i, each in enumerate(rule.examples)}


def failure_of(example, text: str, file: Path) -> Failure | None:
    """The failure that an example tells: at the place `at`, with `values` there."""
    if "at" not in example:
        return None
    before = text.partition(example["at"])[0]
    assert example["at"] in text
    line, column = before.count("\n") + 1, len(before.rpartition("\n")[2])
    source, end = text.splitlines()[line - 1].strip(), column + len(example["at"])
    frame = Frame(str(file), line, "f", source, column, line, end, tuple(example.get("values", ())))
    inner = (
        (Frame("/torch/distributed/distributed_c10d.py", 1, "all_reduce"),)
        if "all_reduce" in example["at"]
        else ()
    )
    kinds = (example["failure"], "Exception")
    return Failure(1, None, (frame, *inner), example["failure"], kinds, example["text"])


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name: str, tmp_path: Path) -> None:
    rule, example = EXAMPLES[name]
    text = example.get("before") or example["unchanged"]
    file = tmp_path / "train.py"
    file.write_text(text)
    failure = failure_of(example, text, file)
    results = []
    if failure is None or rule.signs.fit(failure):
        for proposal in FIXES[rule.fix][0](Seen(tmp_path, failure), rule.options):
            results.append(apply(text.encode(), proposal.edits).decode())
    assert results[:1] == ([example["after"]] if "after" in example else [])


def test_each_rule_that_mends_has_an_example() -> None:
    lacking = [rule.code for rule in RULES if rule.fix not in ("", "all-ranks") and not rule.examples]
    assert lacking == []


def test_codes_are_those_of_runtime_rules_and_no_others() -> None:
    static = Rules(Settings("2.6", ("ALL",))).every
    assert all(1100 <= int(rule.code[3:]) < 1150 for rule in RULES)
    assert not static.keys() & {rule.code for rule in RULES}


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (
            "code: NPU1149\n  name: x\n  summary: x\n  signs: {}\n  fix: rename\n  options: {value: {a: b}}",
            "unknown option 'value'; did you mean 'values'?",
        ),
        ("code: NPU1149\n  name: x\n  summary: x\n  signs: {txt: a}", "unknown option 'txt'"),
        ("code: NPU1149\n  name: x\n  summary: x\n  signs: {}\n  fix: renam", "unknown fix 'renam'"),
        ("code: NPU1149\n  name: x\n  summary: x\n  signs: {text: '('}", "missing )"),
        ("code: NPU1149\n  name: x\n  signs: {}", "'summary' is missing"),
        (
            "code: NPU1149\n  name: x\n  summary: x\n  signs: {}\n  examples: [{befor: x}]",
            "unknown field 'befor'",
        ),
    ],
)
def test_what_no_code_would_use_is_an_error(entry: str, said: str, tmp_path: Path) -> None:
    pack = tmp_path / "mine.yaml"
    pack.write_text(f"- {entry}\n")
    with pytest.raises(RuleError) as error:
        load(pack)
    assert str(error.value).startswith(f"{pack}:1: ")
    assert said in str(error.value)


TRAIN = "place = input()\nnet.to(place)\n"


def verdict(folder: Path, outcome: str = FAILED, line: int = 2) -> Verdict:
    source = (folder / "train.py").read_text().splitlines()[line - 1]
    seen = ({"expression": "place", "kind": "str", "value": "cuda"},)
    frame = Frame(str(folder / "train.py"), line, "<module>", source, values=seen)
    text = "Torch not compiled with CUDA enabled"
    failure = Failure(1, None, (frame,), "AssertionError", ("AssertionError", "Exception"), text)
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
    assert not any(each.kept for each in done.rounds)
    assert done.left == ()
