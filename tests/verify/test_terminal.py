"""The verdict on the terminal."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from migrator.verify.numbers import compare
from migrator.verify.observed import NewShapes, Process, Reached, Work
from migrator.verify.places import Place
from migrator.verify.processes import Ended
from migrator.verify.terminal import show_verdict
from migrator.verify.verdict import Original, Verdict, judge


def process(rank: str | None, npu: str, on_cpu: int = 0) -> Process:
    work = Work(5, 2, 100)
    return Process(
        4194304,
        rank,
        ("train.py", "--data", "/a/long/path" * 9),
        True,
        False,
        {npu: {"aten::mm": 1234567}},
        ("aten::rare",),
        {"HcclAllReduce": {"calls": 2, "bytes": 1 << 31}},
        {
            npu: {"forward": work, "backward": work},
            "cpu": {"forward": Work(1, 1, on_cpu), "backward": Work()},
        },
        0,
    )


def shown(verdict: Verdict) -> str:
    file = io.StringIO()
    show_verdict(Console(file=file, width=80, color_system=None), verdict)
    return file.getvalue()


@pytest.mark.parametrize(
    ("ran", "migrated_for", "said"),
    [
        ("2.13.0+cpu", "1.11.0", True),
        ("2.13.0+cpu", "2.13.0", False),
        ("2.13.1", "2.13.0", False),
        ("2.13.0", "", False),
    ],
)
def test_another_torch_is_told(ran: str, migrated_for: str, said: bool) -> None:
    verdict = replace(
        judge(Ended(0, 1.0), [process(None, "0")], [], [], None), torch=ran, migrated_for=migrated_for
    )
    text = shown(verdict)
    assert (f"Torch    {ran}, and the project was migrated for {migrated_for}:" in text) is said
    assert verdict.other_torch is said
    assert all(len(line) <= 80 for line in text.splitlines())


def test_it_fits_80_columns_and_says_what_counts():
    place = Place("pkg/train.py", "/p/pkg/train.py", (7, 4, 7, 20), "torch.cuda.is_available", "x" * 90)
    comparison = compare("loss 1.5\nonly 2.5", "loss 1.25 " + "y" * 100 + "\nloss 1.75", 1e-3)
    original = Original("/o", Ended(0, 2.0), (), comparison)
    ranks = [process(str(rank), str(rank)) for rank in range(20)]
    verdict = judge(Ended(0, 1.0, left=1), ranks, [Reached(place, 3, ("rank 0",))], [place, place], original)
    text = shown(verdict)
    assert verdict.outcome == "numbers differ"
    assert all(len(line) <= 80 for line in text.splitlines()), text
    for part in (
        "1 of 1 lines differ by more than 0.001",
        "1 process kept running",
        "100.0% forward, 100.0% backward",
        "and 4 more (--json has all)",
        "HcclAllReduce                  40 calls     40.0 GiB",
        "aten::rare",
        "pkg/train.py:7  3× torch.cuda.is_available",
        "not reached: 1",
        "  original  loss 1.5",
        "  migrated  loss 1.75",
        "Only the original printed 1 line of numbers, such as",
        "numbers and speed are the CPU's",
    ):
        assert part in text


def test_new_shapes_are_listed_where_they_come_again():
    often = NewShapes("aten::addmm", 18, 5, "train.py:9", "4x8", "5x8")
    once = NewShapes("aten::mean", 2, 1, "train.py:9", "4", "3")
    ran = replace(process(None, "0"), steps=6, new_shapes=(often, once))
    text = shown(judge(Ended(0, 1.0), [process(None, "0"), ran], [], [], None))
    assert "aten::addmm                      new in 5 of 6 steps, 18 in all  train.py:9\n" in text
    assert "aten::mean" not in text
    assert "New shapes" not in shown(judge(Ended(0, 1.0), [process(None, "0")], [], [], None))


def test_a_tenth_on_the_cpu_is_too_much():
    assert judge(Ended(0, 1.0), [process(None, "0", on_cpu=11)], [], [], None).outcome == "passed"
    verdict = judge(Ended(0, 1.0), [process(None, "0", on_cpu=12)], [], [], None)
    assert (verdict.outcome, verdict.exit_code) == ("not on the NPU", 3)
    assert verdict.reasons == ("the work ran for 11% of its multiply-adds on the CPU",)
    assert "100.0% backward" in shown(verdict)


def test_nothing_ran():
    assert judge(Ended(0, 1.0), [], [], [], None).exit_code == 3
    assert judge(Ended(139, 1.0), [], [], [], None).reasons == ("the program was terminated by signal 11",)
    assert judge(Ended(130, 1.0, interrupted=True), [], [], [], None).exit_code == 130
