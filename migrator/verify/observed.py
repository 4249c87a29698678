"""What the processes of a run noted down: work, operators, collectives, and places that were reached."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from migrator.verify.places import Place
from migrator.verify.stacks import process_name

CPU = "cpu"


@dataclass(frozen=True)
class Work:
    """How much was computed on one kind of device.

    ``products`` are matrix products, convolutions and their like, ``multiply_adds`` the ones in them.
    """

    operators: int = 0
    products: int = 0
    multiply_adds: int = 0

    def __add__(self, other: Work) -> Work:
        return Work(*map(sum, zip(astuple(self), astuple(other))))


@dataclass(frozen=True)
class NewShapes:
    """An operator that met new shapes in ``steps`` steps after the first; ``shapes`` are all of them.

    ``then`` are the first late ones, and ``place`` is the line of the program where they came.
    """

    operator: str
    shapes: int
    steps: int
    place: str
    first: str
    then: str


@dataclass(frozen=True)
class Bounded:
    """A process that ended because it had made the steps, or else the forward passes, that were asked for."""

    pid: int
    parent: int
    rank: str | None
    steps: int
    passes: int


@dataclass(frozen=True)
class Process:
    """One process that imported torch."""

    pid: int
    rank: str | None
    command: tuple[str, ...]
    torch_npu: bool
    transfer: bool  # torch_npu.contrib.transfer_to_npu makes torch.cuda mean the NPU
    operators: dict[str, dict[str, int]]  # by NPU
    without_npu_kernel: tuple[str, ...]
    collectives: dict[str, dict[str, int]]
    work: dict[str, dict[str, Work]]  # by device, then forward and backward
    cuda_on_cpu: int  # how often the CPU stood in for CUDA
    steps: int = 0  # of its optimizers
    new_shapes: tuple[NewShapes, ...] = ()

    def amount(self, direction: str, npu: bool) -> Work:
        """What was computed forward or backward, on all NPUs or on the CPU."""
        parts = [both[direction] for device, both in self.work.items() if (device != CPU) == npu]
        return sum(parts, Work())


@dataclass(frozen=True)
class Reached:
    """A place that was evaluated: how often, and by which ranks or else processes."""

    place: Place
    count: int
    by: tuple[str, ...]


def read_processes(folder: Path) -> list[Process]:
    """Return the processes that wrote a report, by rank and number."""
    found = []
    for path in folder.glob("process-*.json"):
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        work = {
            device: {direction: Work(**amount) for direction, amount in both.items()}
            for device, both in data["work"].items()
        }
        found.append(
            Process(
                data["process"],
                data["rank"],
                tuple(data["command"]),
                data["torch_npu"],
                data["transfer_to_npu"],
                data["operators"],
                tuple(data["without_npu_kernel"]),
                data["collectives"],
                work,
                data["cuda_on_cpu"] or 0,
                data["dynamic_shapes"]["steps"],
                tuple(NewShapes(**entry) for entry in data["dynamic_shapes"]["operators"]),
            )
        )
    return sorted(found, key=lambda process: (_number(process.rank), process.pid))


def read_bounded(folder: Path) -> list[Bounded]:
    """Return the processes that came to the end of their steps, by rank and number."""
    found = []
    for path in folder.glob("steps-*.json"):
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        found.append(Bounded(data["process"], data["parent"], data["rank"], data["steps"], data["passes"]))
    return sorted(found, key=lambda process: (_number(process.rank), process.pid))


def read_reached(folder: Path, places: Sequence[Place], processes: Sequence[Process]) -> list[Reached]:
    """Return the places that any process evaluated. ``places`` is what ``write_places`` was given."""
    ranks = {process.pid: process.rank for process in processes}
    total: Counter[int] = Counter()
    by: dict[int, dict[str, None]] = {}
    for path in sorted(folder.glob("reached-*.json")):
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        rank = ranks.get(data["process"]) or data["rank"]
        who = process_name(data["process"], rank)
        counts = memoryview(path.with_suffix(".counts").read_bytes()).cast("Q")
        for number, count in enumerate(counts):
            if count:
                total[number] += count
                by.setdefault(number, {})[who] = None
    return [Reached(places[number], total[number], tuple(by[number])) for number in sorted(total)]


def write_places(path: Path, places: Sequence[Place]) -> None:
    """Write what the processes are to be watched for; their order is the order of ``places``."""
    spans: dict[str, list[tuple[int, int, int, int]]] = {}
    for place in places:
        spans.setdefault(place.path, []).append(place.span)
    path.write_text(json.dumps(spans), encoding="utf-8")


def sum_work(processes: Sequence[Process], direction: str, npu: bool) -> Work:
    """Return what was computed forward or backward, on NPUs or on the CPU, in all processes."""
    return sum((process.amount(direction, npu) for process in processes), Work())


def _number(rank: str | None) -> int:
    return int(rank) if rank and rank.isdigit() else 1 << 30
