"""What the processes of a run recorded for insight: operators by place, memory, collectives.

``migrator/emulator/bootstrap/npumigrate_emulator/insight.py`` writes it; docs/insight.md has the format.
"""

from __future__ import annotations

import json
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import Any, Optional

from migrator.field_types import built
from migrator.light import Frozen

FORWARD, BACKWARD, OPTIMIZER = PHASES = ("forward", "backward", "optimizer")
_SCHEMA = 1


class Place(Frozen):
    """The innermost line of the project; ``through``: they belong to a ``print``, or to a ``reference``.

    A reference is what the emulator computes one operator of torch_npu's own with.
    """

    file: str
    line: int
    function: str
    through: str = ""


class Sum(Frozen):
    """Calls, the bytes that they read and wrote, and the multiply-adds in products."""

    calls: int = 0
    bytes: int = 0
    multiply_adds: int = 0

    def __add__(self, other: Sum) -> Sum:
        products = self.multiply_adds + other.multiply_adds
        return Sum(self.calls + other.calls, self.bytes + other.bytes, products)


class Record(Frozen):
    """One operator at one place, with one kind of arguments, in one phase.

    ``first`` is up to the end of the first step, ``later`` in the steps after it, ``after`` behind the last
    one; it came in ``seen_steps`` later steps. ``examples`` are shapes of arguments and results,
    ``8x3 4x3>8x4``; those from ``first_shapes`` on came in later steps. ``new_steps`` of these had new
    shapes; in ``origins`` of them nothing had brought new shapes before.
    """

    place: Optional[Place]
    device: int
    operator: str
    phase: str
    types: tuple[str, ...]
    options: tuple[str, ...]
    crossing: str
    by_truth: bool
    first: Sum
    later: Sum
    after: Sum
    seen_steps: int
    shapes: int
    first_shapes: int
    new_steps: int
    origins: int
    examples: tuple[str, ...]
    stack: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The operator without its library and its overload."""
        return self.operator.partition("::")[2].partition(".")[0]

    @property
    def all(self) -> Sum:
        """All of the run."""
        return self.first + self.later + self.after

    @property
    def changed_in(self) -> int:
        """The steps in which its shapes were other ones; its first step is none of these."""
        return self.new_steps if self.first_shapes else max(0, self.new_steps - 1)

    @property
    def by_program(self) -> bool:
        """Whether the program asked for it, and not the emulator."""
        return self.place is not None and self.place.through != "reference"


class Held(Frozen):
    """What one operator at one place had in memory at the peak."""

    place: Optional[Place]
    operator: str
    bytes: int
    number: int


class Memory(Frozen):
    """The memory of one NPU in one process: peaks by phase, what stays between steps, who has the peak."""

    peaks: dict[str, int]
    reserved: int
    kept: Optional[int]
    held: tuple[Held, ...]

    @property
    def peak(self) -> int:
        """The largest of the peaks."""
        return max(self.peaks.values())


class Collective(Frozen):
    """A call of a collective: how much it sends, and from where."""

    kind: str
    group: str
    size: int
    rank: int
    bytes: int
    place: Optional[Place]


class Recorded(Frozen):
    """One process. ``collectives`` are in their order, each with the number of steps before it."""

    pid: int
    rank: Optional[str]
    steps: int
    records: tuple[Record, ...] = ()
    memory: Mapping[str, Memory] = field(default_factory=dict)
    collectives: tuple[tuple[Collective, int], ...] = ()
    without_npu_kernel: frozenset[str] = frozenset()
    composite: frozenset[str] = frozenset()  # operators that torch itself makes of others

    @property
    def who(self) -> str:
        """The rank, or else the process."""
        return self.rank if self.rank is not None else f"process {self.pid}"

    def per_step(self, record: Record) -> Optional[float]:
        """How often a record came in each step after the first; None where there were no such steps."""
        return record.later.calls / (self.steps - 1) if self.steps > 1 else None


def noted(folder: Path, kind: str, old: Container[str] = ()) -> list[dict[str, Any]]:
    """What the processes wrote to files of one kind, by rank and number; not that to the ``old`` files.

    A file that a process did not finish, because it was killed, is left out.
    """
    found = []
    for path in (path for path in folder.glob(f"{kind}-*.json") if path.name not in old):
        with suppress(ValueError):
            found.append(json.loads(path.read_bytes()))

    def order(data: Mapping[str, Any]) -> tuple[int, int]:
        rank = data["rank"]
        return int(rank) if rank and rank.isdigit() else 1 << 30, data["process"]

    return sorted(found, key=order)


def read_recorded(folder: Path, old: Container[str] = ()) -> list[Recorded]:
    """The processes that recorded something, by rank and number.

    Those that were killed have collectives alone. ``old`` are the names of files of an earlier run.
    """
    paths = [path for path in folder.glob("collectives-*.txt") if path.name not in old]
    collectives = {int(path.stem.partition("-")[2]): _collectives(path) for path in paths}
    found = []
    for data in noted(folder, "process", old):
        insight = data.get("insight")
        if insight is not None and insight["schema"] == _SCHEMA:
            found.append(_process(data, insight, collectives.pop(data["process"], ())))
    for pid, calls in collectives.items():
        largest = max((call for call, _ in calls), key=lambda call: call.size, default=None)
        found.append(Recorded(pid, None if largest is None else str(largest.rank), 0, collectives=calls))
    return sorted(found, key=lambda process: (process.rank is None, int(process.rank or 0), process.pid))


def _process(
    data: Mapping[str, Any], insight: Mapping[str, Any], calls: tuple[tuple[Collective, int], ...]
) -> Recorded:
    def placed(entry: Mapping[str, Any], **more: Any) -> dict[str, Any]:
        number = entry["place"]
        return {**entry, **more, "place": insight["places"][number] if number >= 0 else None}

    records = []
    for number, record in enumerate(insight["records"]):
        words = {key: record[key].split() for key in ("types", "options")}
        sums = {key: vars(Sum(*record[key])) for key in ("first", "later", "after")}
        stack = insight["stacks"].get(str(number), ())
        records.append(built(Record, placed(record, **words, **sums, stack=stack)))
    memory = {}
    for device, of_device in insight["memory"].items():
        peaks, held = {phase: of_device[phase] for phase in PHASES}, [*map(placed, of_device["tensors"])]
        memory[device] = built(Memory, {**of_device, "peaks": peaks, "held": held})
    lacking, composite = frozenset(data["without_npu_kernel"]), frozenset(insight["composite"])
    pid, rank, steps = data["process"], data["rank"], insight["steps"]
    return Recorded(pid, rank, steps, tuple(records), memory, calls, lacking, composite)


def _collectives(path: Path) -> tuple[tuple[Collective, int], ...]:
    """What one process wrote down: a line of JSON for each new kind of call, and a line for each call."""
    known: list[Collective] = []
    calls: list[tuple[Collective, int]] = []
    whole = path.read_bytes().rpartition(b"\n")[0]  # one that was killed may have left half a line
    for line in whole.splitlines():
        if line.startswith(b"{"):
            known.append(built(Collective, json.loads(line.decode("utf-8", "replace"))))
        else:
            number, _, step = line.partition(b" ")
            calls.append((known[int(number)], int(step)))
    return tuple(calls)


def most_steps(processes: Sequence[Recorded]) -> int:
    """The steps of the process that made the most."""
    return max((process.steps for process in processes), default=0)
