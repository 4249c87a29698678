"""What a program lacks, by what ended it or where it waits; and when it is still."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from migrator.data_folders import reports_yaml
from migrator.verify.diagnosis import Failure, Frame, what_fails, what_waits
from migrator.verify.observed import Bounded
from migrator.verify.processes import Ended, Stillness
from migrator.verify.stacks import read_stacks
from migrator.verify.verdict import Course

DUMP = """Thread 0x00007f1 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 10 in wait

Current thread 0x00007f2 (most recent call first):
  File "/venv/site-packages/torch/distributed/rendezvous.py", line 30 in _create_c10d_store
  File "/venv/site-packages/torch/distributed/distributed_c10d.py", line 20 in init_process_group
  File "{train}", line 2 in main
  File "{train}", line 5 in <module>
"""


def failure(kinds: tuple[str, ...], text: str, process: int = 1) -> Failure:
    return Failure(
        process, "1", kinds[0], kinds, text, (Frame("/p/train.py", 3, -1, 3, -1, "main", "load()"),)
    )


@pytest.mark.parametrize(
    ("kinds", "text", "name"),
    [
        (("FileNotFoundError", "OSError"), "No such file or directory: 'data/train'", "data missing"),
        (("RuntimeError",), "Dataset not found. You can use download=True to download it", "data missing"),
        (("DistNetworkError",), "The server socket has failed to listen: EADDRINUSE", "port taken"),
        (("OSError",), "[Errno 98] Address already in use", "port taken"),
        (
            ("DistStoreError",),
            "Timed out after 61 seconds waiting for clients. 1/2 clients joined.",
            "rank missing",
        ),
        (("EOFError",), "EOF when reading a line", "waits for input"),
        (("URLError", "OSError"), "<urlopen error [Errno -3] …>", "not to be downloaded"),
        (("ModuleNotFoundError", "ImportError"), "No module named 'apex'", "package missing"),
        (("EOFError",), "Ran out of input", None),
        (("RuntimeError",), "Expected all tensors to be on the same device", None),
        (("ImportError",), "cannot import name 'x'", None),
    ],
)
def test_what_fails(kinds: tuple[str, ...], text: str, name: str | None) -> None:
    lack = what_fails([failure(kinds, text), failure(("EOFError",), "EOF when reading a line")], Path("/p"))
    assert (lack.name if lack else None) == name
    if lack:
        assert lack.lines == (f"rank 1 at train.py:3: {kinds[0]}: {text}",)


def test_who_waits_where(tmp_path: Path) -> None:
    train = tmp_path / "train.py"
    train.write_text("def main():\n    dist.init_process_group('hccl')\n\n\nmain()\n")
    (tmp_path / "stacks-7.txt").write_text(DUMP.format(train=train))
    (tmp_path / "stacks-7.json").write_text(json.dumps({"rank": "0"}))
    (tmp_path / "stacks-8.txt").write_text("")  # it did not answer
    lack = what_waits(read_stacks(tmp_path), tmp_path)
    assert lack is not None
    assert (lack.name, lack.lines) == ("rank missing", ("rank 0 waits in init_process_group at train.py:2",))


def test_regular_expressions_and_fields_of_the_signs() -> None:
    for entries, fields in (("failures", {"kinds", "text"}), ("waits", {"calls", "source", "files"})):
        for entry in reports_yaml("waiting.yaml")[entries]:
            assert entry.keys() - fields == {"name", "advice"}
            assert entry.keys() & fields


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
