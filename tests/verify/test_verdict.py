"""What a program lacks, where it waits; the verdict on the terminal; the numbers that two runs print."""

from __future__ import annotations

import io
import json
import math
import os
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from migrator.cli import main
from migrator.compare.printed import compare, lines
from migrator.data_folders import reports_yaml
from migrator.insight.recorded import read_recorded
from migrator.verify.diagnosis import Failure, Frame, read_failures, read_stacks, what_fails, what_waits
from migrator.verify.observed import (
    Bounded,
    NewShapes,
    Place,
    Process,
    Reached,
    Work,
    read_bounded,
    read_processes,
    read_reached,
)
from migrator.verify.processes import Ended, Stillness
from migrator.verify.run import migrated_for
from migrator.verify.terminal import show_verdict
from migrator.verify.verdict import Course, Original, Verdict, judge

DUMP = """Thread 0x00007f1 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 10 in wait

Current thread 0x00007f2 (most recent call first):
  File "/venv/site-packages/torch/distributed/rendezvous.py", line 30 in _create_c10d_store
  File "/venv/site-packages/torch/distributed/distributed_c10d.py", line 20 in init_process_group
  File "{train}", line 2 in main
  File "{train}", line 5 in <module>
"""


def failure(kinds: tuple[str, ...], text: str, process: int = 1) -> Failure:
    return Failure(process, "1", (Frame("/p/train.py", 3, "main", "load()"),), kinds[0], kinds, text)


@pytest.mark.parametrize(
    ("kinds", "text", "name"),
    [
        (("FileNotFoundError", "OSError"), "No such file or directory: 'data/train'", "data missing"),
        (("RuntimeError",), "Dataset not found. You can use download=True to download it", "data missing"),
        (("DistNetworkError",), "The server socket has failed to listen: EADDRINUSE", "port taken"),
        (("OSError",), "[Errno 98] Address already in use", "port taken"),
        (("DistStoreError",), "Timed out after 61 seconds waiting for clients. 1/2 joined.", "rank missing"),
        (("EOFError",), "EOF when reading a line", "waits for input"),
        (("URLError", "OSError"), "<urlopen error [Errno -3] …>", "download failed"),
        (("ModuleNotFoundError", "ImportError"), "No module named 'apex'", "package missing"),
        (("EOFError",), "Ran out of input", None),
        (("RuntimeError",), "Expected all tensors to be on the same device", None),
        (("ImportError",), "cannot import name 'x'", None),
    ],
)
def test_what_fails(kinds: tuple[str, ...], text: str, name: str | None) -> None:
    failures = [failure(kinds, text), failure(("EOFError",), "EOF when reading a line")]
    lack, _entry = what_fails(failures, Path("/p"))
    assert (lack.name if lack else None) == name
    if lack:
        assert lack.lines == (f"rank 1 at train.py:3: {kinds[0]}: {text}",)


def test_who_waits_where(tmp_path: Path) -> None:
    train = tmp_path / "train.py"
    train.write_text("def main():\n    dist.init_process_group('hccl')\n\n\nmain()\n")
    (tmp_path / "stacks-7.txt").write_text(DUMP.format(train=train))
    (tmp_path / "stacks-7.json").write_text(json.dumps({"process": 7, "rank": "0"}))
    (tmp_path / "stacks-8.txt").write_text("")  # it did not answer
    lack = what_waits(read_stacks(tmp_path), tmp_path)
    assert lack is not None
    assert (lack.name, lack.lines) == ("rank missing", ("rank 0 waits in init_process_group at train.py:2",))


def test_what_a_killed_process_did_not_finish_is_left_out(tmp_path: Path) -> None:
    whole = {"process": 7, "rank": "0"}
    for kind in ("process", "steps", "reached", "stacks", "failure"):
        (tmp_path / f"{kind}-8.json").write_text(json.dumps(whole)[:-4])
        (tmp_path / f"{kind}-9.json").write_text("")
    (tmp_path / "reached-7.json").write_text(json.dumps(whole))  # and nothing was counted
    (tmp_path / "stacks-8.txt").write_text(DUMP.format(train="train.py"))
    call = {"kind": "HcclAllReduce", "group": "g", "size": 2, "rank": 1, "bytes": 16, "place": None}
    lines = f"{json.dumps(call)}\n0 1\n0 2\n{json.dumps(call)[:20]}"
    (tmp_path / "collectives-8.txt").write_text(lines)
    assert read_processes(tmp_path) == read_bounded(tmp_path) == read_failures(tmp_path) == []
    assert read_reached(tmp_path, (), ()) == []
    assert [(stack.process, stack.rank) for stack in read_stacks(tmp_path)] == [(8, None)]
    assert [len(process.collectives) for process in read_recorded(tmp_path)] == [2]


def test_regular_expressions_and_fields_of_the_signs() -> None:
    fields = {"calls", "source", "files"}
    for entry in reports_yaml("waiting.yaml")["waits"]:
        assert entry.keys() - fields == {"name", "advice"}
        assert entry.keys() & fields


def test_a_failure_is_explained() -> None:
    peer = failure(("RuntimeError",), "EI0006: Getting socket times out")
    own = failure(("RuntimeError",), "NPU out of memory. Tried to allocate 2.00 GiB")
    lack, entry = what_fails([peer, own], Path("/p"))
    assert (lack, entry and entry.code) == (None, "npu-out-of-memory")
    verdict = judge(Ended(1, 1.0), [], [], [], None, Course((peer, own), explained=entry))
    assert verdict.reasons[2].startswith("npu-out-of-memory: The tensors of this step")
    assert "  Make the batch smaller" in shown(verdict)
    _lack, alone = what_fails([peer], Path("/p"))
    assert alone is not None
    assert alone.code == "EI0006"


@pytest.mark.parametrize(("used", "still"), [(0.0, True), (0.2, False)])
def test_a_program_is_still_where_it_uses_no_processor(used: float, still: bool, monkeypatch) -> None:
    now = [0.0]
    monkeypatch.setattr("migrator.verify.processes.time.monotonic", lambda: now[0])
    monkeypatch.setattr("migrator.verify.processes._usage", lambda pid: (pid, (used * now[0], 0)))
    program = Stillness(lambda: [os.getpid()], 0.0, 0.0)
    for second in range(1, 12):
        now[0] = float(second)
        seconds = program.seconds()
    assert seconds == (10 if still else 0)


def test_what_follows_from_the_end_of_the_steps() -> None:
    bounded = (Bounded(11, 10, "0", 3, 0),)
    parent, rank = failure(("FileNotFoundError",), "best.pt", 10), failure(("RuntimeError",), "wrong", 12)
    assert Course((parent,), bounded=bounded).only_followed(Ended(1, 5.0))
    assert not Course((parent, rank), bounded=bounded).only_followed(Ended(1, 5.0))
    assert not Course((), bounded=bounded).only_followed(Ended(1, 5.0))
    assert Course((), bounded=bounded).only_followed(Ended(143, 5.0, timed_out=True, still=60.0))
    assert not Course((), bounded=()).only_followed(Ended(143, 5.0, timed_out=True, still=60.0))


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
    assert (f"Torch    {ran}, but the project was migrated for {migrated_for}:" in text) is said
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
        "and 4 more (--json lists all)",
        "HcclAllReduce                  40 calls     40.0 GiB",
        "aten::rare",
        "pkg/train.py:7  3× torch.cuda.is_available",
        "not reached: 1",
        "  original  loss 1.5",
        "  migrated  loss 1.75",
        "Numbers were printed only by the original (1 line), such as",
        "numbers and speed are those of the CPU",
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


def test_mixed_precision_that_is_off_is_a_warning_with_its_lines():
    frames = (Frame("/p/mixed.py", 3, "f"), Frame("/v/site-packages/torch/cuda/amp/autocast_mode.py", 9, "g"))
    lost = Failure(1, "0", frames, "LostPrecision", ("LostPrecision",), "autocast of CUDA is off")
    course = Course(lost=(lost, replace(lost, process=2, rank="1")))
    warned = judge(Ended(0, 1.0), [process(None, "0")], [], [], None, course)
    assert (warned.outcome, warned.exit_code) == ("passed with a warning", 0)
    assert warned.reasons == ("autocast of CUDA is off (mixed.py:3)",)
    assert "Verdict: passed with a warning\n  autocast of CUDA is off (mixed.py:3)\n" in shown(warned)
    on_cpu = judge(Ended(0, 1.0), [process(None, "0", on_cpu=12)], [], [], None, course)
    assert (on_cpu.outcome, len(on_cpu.reasons)) == ("not on the NPU", 2)


def test_nothing_ran():
    assert judge(Ended(0, 1.0), [], [], [], None).exit_code == 3
    assert judge(Ended(139, 1.0), [], [], [], None).reasons == ("the program was terminated by signal 11",)
    assert judge(Ended(130, 1.0, interrupted=True), [], [], [], None).exit_code == 130


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("batch 0/3 | Loss: 2.190674 | Acc: 0.000% (0/4)", ("0", "3", "2.190674", "0.000", "0", "4")),
        ("12%|█ | 3/25 [00:01<00:05, 3.2it/s, loss=0.312]", ("12", "3", "25", "0.312")),
        (
            "Epoch: [0][ 1/2]\tTime  1.23 ( 1.30)\tData  0.1 ( 0.1)\tLoss 6.9e+00 (7.0)",
            ("0", "1", "2", "6.9e+00", "7.0"),
        ),
        ("2026-11-21 14:17:52,942 beta 0.9 theta -.5", ("0.9", "-.5")),
        ("tensor([1., nan], device='npu:0')", ("1.", "nan")),
        ("val/acc: 0.25, loss 0.5 min 0.2", ("0.25", "0.5", "0.2")),
        ("resnet50 conv1x1", ()),
        ("saved to /tmp/x/ck_0.5.pt, runs/0.7/log.txt in 3.2 seconds", ()),
        ("Memory: 123.4 MB, speed 0.5 img/s, elapsed=5.25, train_runtime: 12.5", ()),
        ("train_samples_per_second: 3.4; took 2.5s; ETA 0.5; 1.5 ms/step", ()),
        ("{'train_runtime': '1.195', 'train_steps_per_second': '10.04', 'train_loss': '5.25'}", ("5.25",)),
        ("| lr 0.1 | ms/batch 546.25 | loss 5.10", ("0.1", "5.10")),
        ("sec/tick 1.3 s/it: 0.2 img/s 31.5 cpumem 0.40 gpumem 0.52 GPU_mem 1.5", ()),
        ("torch 2.13.0 at 0x7fff12 from 127.0.0.1", ()),
        ("[W1121 14:17:52.172949168 NPUCachingAllocator.cpp:168] Warning: 0.5", ()),
        ("[rank0]:[W1121 14:17:52.1 x.cpp:168] Warning: 0.5", ()),
        ("/a/b.py:12: UserWarning: 0.5", ()),
        ("Note: call it again. (Triggered internally at /pytorch/aten/src/ATen/Ops.cpp:874.)", ()),
    ],
)
def test_what_could_be_a_result(text, numbers):
    assert tuple(number for line in lines(text) for number in line.numbers) == numbers


@pytest.mark.parametrize(
    ("original", "migrated", "agrees"),
    [
        ("loss 1.0000", "loss 1.0009", True),
        ("loss 1.0000", "loss 1.0021", False),
        ("loss 0.0123", "loss 0.0124", True),  # the last place was rounded
        ("loss 0.1", "loss 0.2", False),  # too few places to say so
        ("loss nan", "loss nan", True),
        ("loss nan", "loss 1.5", False),
        ("step 3 loss 1.5", "step 4 loss 1.5", False),  # whole numbers are exact
        ("using CUDA: loss 1.5", "using NPU: loss 1.5", True),
        ("[1.5, 2.5]", "[1.5, 2.5, 3.5]", None),
        ("epoch 1", "epoch 1", None),
        ("took 1.5 s", "took 2.5 s", None),
    ],
)
def test_two_lines(original, migrated, agrees):
    comparison = compare(original, migrated, 1e-3)
    assert comparison.agrees is bool(agrees)
    assert bool(comparison.compared) is (agrees is not None)


def test_lines_of_ranks_come_in_any_order():
    comparison = compare("rank 0 loss 1.5\nrank 1 loss 2.5", "rank 1 loss 2.5\nrank 0 loss 1.5\n", 0)
    assert comparison.agrees
    assert comparison.numbers == 4
    assert comparison.largest == 0


def test_what_only_one_printed_is_told():
    comparison = compare("loss 1.5\nloss 2.5\nold 3.5", "loss 1.5\nnew 4.5", 0)
    assert comparison.agrees
    assert comparison.only_original == ("loss 2.5", "old 3.5")
    assert comparison.only_migrated == ("new 4.5",)


def test_the_largest_difference():
    assert compare("a 1.0\nb 2.0", "a 1.0\nb 2.5", 0).largest == pytest.approx(0.2)
    assert compare("a nan", "a 1.5", 0).largest == math.inf


def test_the_reports_know_it(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "train.py").write_text("import torch\n")
    assert main.run(["migrate", "-q", "-i", str(tmp_path / "p"), "-o", str(tmp_path), "-v", "1.11"]) == 0
    assert migrated_for(tmp_path / "p_msft") == "1.11.0"


def test_without_reports_it_is_not_known(tmp_path: Path) -> None:
    assert migrated_for(tmp_path) == ""
    (tmp_path / "migration_report").mkdir()
    for text in ("{", "[]", "{}"):
        (tmp_path / "migration_report" / "summary.json").write_text(text)
        assert migrated_for(tmp_path) == ""
