"""Runtime rules with their examples, rules that cannot be used, and what a repair keeps and takes back."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from migrator.core.rules import Rules
from migrator.core.settings import Settings
from migrator.findings.edits import apply
from migrator.matchers.packs import RuleError
from migrator.verify.diagnosis import Failure, Frame, read_stacks, what_waits
from migrator.verify.observed import Process
from migrator.verify.processes import Ended
from migrator.verify.repair.fixes import guards, load, load_all, proposals
from migrator.verify.repair.loop import MOST_ROUNDS, lines, record, repair
from migrator.verify.repair.site import Seen
from migrator.verify.verdict import FAILED, INTERRUPTED, NOT_ON_NPU, PASSED, WAITS, Course, Shares, Verdict
from tests.checking import load_pack

RULES = load_all()
EXAMPLES = {f"{rule.code}-{i}": (rule, each) for rule in RULES for i, each in enumerate(rule.examples)}


def failure_of(rule, example, text: str, file: Path) -> Failure | None:
    """The failure that an example tells: at the place `at`, with `values` there."""
    if "at" not in example:
        return None
    before = text.partition(example["at"])[0]
    assert example["at"] in text
    line, column = before.count("\n") + 1, len(before.rpartition("\n")[2])
    source, end = text.splitlines()[line - 1].strip(), column + len(example["at"])
    frame = Frame(str(file), line, "f", source, column, line, end, tuple(example.get("values", ())))
    inner = [Frame("/torch/distributed/distributed_c10d.py", 1, name) for name in rule.signs.calls[:1]]
    kinds = (example["failure"], "Exception")
    return Failure(1, None, (frame, *inner), example["failure"], kinds, example["text"])


def ran(*files: Path) -> Course:
    """A run that took the CPU in each condition that chooses a device."""
    every = (code for file in files for code in Seen(file.parent, files=[str(file)]).every())
    spots = (code.spot(parts[0]) for code in every for parts, _ in guards(code))
    return Course(evaluated=frozenset(spots))


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name: str, tmp_path: Path) -> None:
    rule, example = EXAMPLES[name]
    text = example.get("before") or example["unchanged"]
    file = tmp_path / "train.py"
    file.write_text(text)
    failure = failure_of(rule, example, text, file)
    course, results = ran(file), []
    if failure is None or rule.signs.fit(failure):
        for proposal in proposals(rule, Seen(tmp_path, failure, course, [str(file)])):
            results.append(apply(text.encode(), proposal.edits).decode())
    assert results[:1] == ([example["after"]] if "after" in example else [])


def test_each_rule_that_mends_has_an_example() -> None:
    lacking = [rule.code for rule in RULES if rule.fix not in ("", "all-ranks") and not rule.examples]
    assert lacking == []


def test_codes_are_those_of_runtime_rules_and_no_others() -> None:
    static = Rules(Settings("2.6", ("ALL",)), load_pack).every
    assert all(re.fullmatch(r"NPU11[0-4]\d", rule.code) for rule in RULES)
    assert len({rule.code for rule in RULES}) == len(RULES)
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
            "unknown option 'befor'; did you mean 'before'?",
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


def test_a_run_that_ends_before_its_program_begins_leaves_no_change(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    runs = iter([verdict(tmp_path)])

    def run() -> Verdict:
        try:
            return next(runs)
        except StopIteration:
            raise KeyboardInterrupt from None

    done = repair(tmp_path, run, print)
    assert (tmp_path / "train.py").read_text() == TRAIN
    assert ([each.kept for each in done.rounds], done.verdict.outcome) == ([False], INTERRUPTED)


def test_what_brings_an_earlier_failure_back_is_taken_back(tmp_path: Path) -> None:
    """One line fails, then the next one, then the first again: the second change led back to it."""
    lines = "a = input()\nb = input()\nnet.to(a)\nnet.to(b)\n"
    (tmp_path / "train.py").write_text(lines)
    names = iter("aba")

    def run() -> Verdict:
        name = next(names, "b")
        failed = frame(tmp_path, "train.py", 3 + (name == "b"), "<module>", **{name: "cuda"})
        where = replace(failed, source=f"net.to({name})")
        return ended(tmp_path, where, text="Torch not compiled with CUDA enabled")

    done = repair(tmp_path, run, print)
    assert [each.kept for each in done.rounds] == [True, False, False]
    assert (tmp_path / "train.py").read_text() == lines.replace(
        "input()", 'str(input()).replace("cuda", "npu")', 1
    )


def test_a_program_that_waits_at_the_same_line_has_no_help(tmp_path: Path) -> None:
    """Its process has another number in each run."""
    text = "rank = 0\nif rank == 0:\n    print(rank)\n    queue.get()\n"
    (tmp_path / "train.py").write_text(text)
    numbers = itertools.count(100)

    def run() -> Verdict:
        process = next(numbers)
        notes = tmp_path / f"notes_{process}"
        notes.mkdir()
        stack = (
            f'Thread 0x1 (most recent call first):\n  File "{tmp_path / "train.py"}", line 4 in <module>\n'
        )
        (notes / f"stacks-{process}.txt").write_text(stack)
        stacks = tuple(read_stacks(notes))
        lack = what_waits(stacks, tmp_path)
        ended = Ended(143, 9.0, timed_out=True, still=9.0)
        reasons = (lack.name, *lack.lines)
        course = Course(stacks=stacks, lack=lack)
        return Verdict(WAITS, reasons, ended, (), Shares(None, None, ""), (), 0, None, course)

    done = repair(tmp_path, run, print)
    assert [(each.rule.code, each.kept) for each in done.rounds] == [("NPU1133", False)]
    assert (tmp_path / "train.py").read_text() == text


def project(folder: Path, **modules: str) -> None:
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)


def ended(
    folder: Path, *frames: Frame, text: str = "", asked: tuple[str, ...] = (), npu: float = 0.0
) -> Verdict:
    """A run that loaded all modules but those named tool, and failed; or else left its work to the CPU."""
    failure = Failure(1, None, frames, "RuntimeError", ("RuntimeError", "Exception"), text)
    files = tuple(str(file) for file in sorted(folder.glob("*.py")) if "tool" not in file.name)
    process = Process(1, None, ("train.py",), True, False, {}, (), {}, {}, files=files)
    course = replace(ran(*(folder / f"{name}.py" for name in asked)), failures=(failure,) if frames else ())
    outcome, code = (FAILED, 1) if frames else (NOT_ON_NPU, 0)
    reason = f"the work ran for {1 - npu:.0%} on the CPU"
    shares = Shares(npu, npu, "multiply-adds")
    return Verdict(outcome, (reason,), Ended(code, 1.0), (process,), shares, (), 0, None, course)


def frame(folder: Path, file: str, line: int, function: str, **values: str) -> Frame:
    source = (folder / file).read_text().splitlines()[line - 1].strip()
    described = ({"expression": name, "kind": "str", "value": value} for name, value in values.items())
    return Frame(str(folder / file), line, function, source, values=tuple(described))


SETTINGS = "import json\nPLACE = json.load(open('place.json'))\n"


@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("settings.PLACE", "import settings\nx.to(settings.PLACE)\n"),
        ("PLACE", "from settings import PLACE\nx.to(PLACE)\n"),
        ("where.PLACE", "import settings as where\nx.to(where.PLACE)\n"),
        ("PLACE", "from tables import PLACE\nx.to(PLACE)\n"),
        ("place", "from tables import chosen\nplace = chosen()\nx.to(place)\n"),
        ("device", "from tables import Options\nmine = Options()\ndevice = mine.device\nx.to(device)\n"),
    ],
)
def test_the_line_is_changed_where_a_value_came_from(tmp_path: Path, name: str, use: str) -> None:
    """Through modules, functions and fields: not each of the lines that use it."""
    tables = "from settings import PLACE\ndef chosen(place=PLACE):\n    return place\n"
    tables += "class Options:\n    device: str = PLACE\n"
    project(tmp_path, settings=SETTINGS, tables=tables, data=use, train="import data\n")
    failed = frame(tmp_path, "data.py", use.count("\n"), "<module>", **{name: "cuda"})
    text = "Torch not compiled with CUDA enabled"
    runs = iter([ended(tmp_path, failed, text=text), verdict(tmp_path, PASSED, 1)])
    done = repair(tmp_path, lambda: next(runs), print)
    changed = SETTINGS.replace("json.load(open('place.json'))", 'str({}).replace("cuda", "npu")')
    assert (tmp_path / "settings.py").read_text() == changed.format("json.load(open('place.json'))")
    assert (tmp_path / "data.py").read_text() == use
    assert [(each.kept, each.finding.file) for each in done.rounds] == [(True, "settings.py")]


def test_what_the_run_did_not_load_stays_and_so_do_conditions_that_ask_for_no_device(tmp_path: Path) -> None:
    guard = "import torch\nif __name__ == '__main__':\n    torch.nn.Linear(2, 2).npu()\n"
    asks = "import shutil\nplace = 'npu' if shutil.which('nvidia-smi') else 'cpu'\n"
    project(tmp_path, train=guard, tool=guard, tool_of_others=asks)
    before = {file: file.read_text() for file in tmp_path.iterdir()}
    run = partial(ended, tmp_path, asked=("train", "tool", "tool_of_others"))
    done = repair(tmp_path, run, print)
    assert done.rounds == ()
    assert {file: file.read_text() for file in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    ("does", "changes"),
    [
        ('"""One process per GPU: the first one."""\n    return number == 0', False),
        ("return number == 0  # of the processes, one per GPU", False),
        ('"""Whether there is one."""\n    return bool(shutil.which("nvidia-smi"))', True),
    ],
)
def test_what_a_guard_tells_its_readers_makes_it_no_guard_of_devices(
    tmp_path: Path, does: str, changes: bool
) -> None:
    text = f"def first():\n    {does}\nif first():\n    place = 'npu'\n"
    project(tmp_path, train=text)
    done = repair(tmp_path, partial(ended, tmp_path, asked=("train",)), print)
    assert {each.rule.code for each in done.rounds} == ({"NPU1131"} if changes else set())


def test_a_condition_that_was_not_evaluated_stays(tmp_path: Path) -> None:
    asks = "import shutil\nplace = 'npu' if shutil.which('nvidia-smi') else 'cpu'\n"
    project(tmp_path, train=asks, other=asks)
    text = "Expected all tensors to be on the same device"
    failed = frame(tmp_path, "train.py", 2, "<module>", place="cpu")
    runs = iter([ended(tmp_path, failed, text=text, asked=("other",)), verdict(tmp_path, PASSED)])
    assert [each.finding.file for each in repair(tmp_path, lambda: next(runs), print).rounds] == ["other.py"]
    assert (tmp_path / "train.py").read_text() == asks


def test_a_percent_more_on_npus_is_no_help(tmp_path: Path) -> None:
    """It is what another run of the same program may give, too."""
    asks = "import shutil\nplace = 'npu' if shutil.which('nvidia-smi') else 'cpu'\n"
    project(tmp_path, train=asks)
    shares = iter([0.5, 0.51])
    done = repair(tmp_path, lambda: ended(tmp_path, asked=("train",), npu=next(shares)), print)
    assert [each.kept for each in done.rounds] == [False]
    assert (tmp_path / "train.py").read_text() == asks


def test_after_five_minutes_without_progress_it_ends_with_what_it_learnt(tmp_path: Path) -> None:
    asks = "import shutil\nif shutil.which('nvidia-smi'):\n    place = 'npu'\n"
    project(tmp_path, train=asks, other=asks, another=asks)
    times = iter(range(0, 10_000, 200))
    run = partial(ended, tmp_path, asked=("train", "other", "another"))
    done = repair(tmp_path, run, print, lambda: next(times))
    assert [each.kept for each in done.rounds] == [False]
    assert done.left[-1] == "ended:  no progress for five minutes"
    assert lines(done)[0].startswith("taken back: NPU1131 another.py:2 ")
    assert (tmp_path / "another.py").read_text() == asks
