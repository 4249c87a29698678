"""What is known of a profile: of a mean step, in microseconds; of memory, in bytes."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import inf

# Of a step, in the order in which they are told.
PARTS = ("compute", "communication", "bubble", "data", "fallback", "host")
_FRAME = re.compile(r"^(?P<file>.+?)\((?P<line>\d+)\): (?P<function>.+)$")
_INSTALLED = re.compile(r"site-packages|dist-packages|/lib/python3|^<|^torch(?:_npu)?/|^\w+\.py$")


@dataclass
class Operator:
    """An operator as torch calls it, or a kernel: its time and where the program asks for it."""

    name: str
    kind: str = ""
    calls: float = 0
    device: float = 0.0
    host: float = 0.0
    places: dict[str, float] = field(default_factory=dict)

    def add(self, calls: float, device: float, host: float = 0.0, place: str = "") -> None:
        """Count calls, with their time."""
        self.calls += calls
        self.device += device
        self.host += host
        if place:
            self.places[place] = self.places.get(place, 0.0) + (device or host)

    @property
    def place(self) -> str:
        """The line of the program that costs most, with its function; empty where none is known."""
        return max(self.places, key=lambda place: self.places[place], default="")


@dataclass
class Fact:
    """A sign of something: how much of the whole it is about, and what it is."""

    amount: float
    whole: float
    what: str = ""
    places: tuple[str, ...] = ()


@dataclass
class Memory:
    """The memory of one device: at its peak, or when a snapshot was taken."""

    device: str
    allocated: float = 0.0
    reserved: float = 0.0
    unused: float = 0.0  # reserved by the allocator and not in use, when it reserved most
    when: float = 0.0
    largest_free: float = 0.0  # of a snapshot
    refused: float = 0.0  # the request that ended in an out-of-memory error
    besides: dict[str, float] = field(default_factory=dict)
    holders: list[Operator] = field(default_factory=list)  # `device` is bytes here
    modules: dict[str, float] = field(default_factory=dict)


@dataclass
class Profile:
    """One rank's profile. ``steps`` is 0 for what has no time: a memory snapshot."""

    path: str
    device: str = "NPU"
    rank: str = ""
    steps: int = 0
    step: float = 0.0
    whole: bool = False  # no steps are marked: it is all that was recorded
    parts: dict[str, float] = field(default_factory=dict)
    communication: float = 0.0  # also what computing hides
    operators: dict[str, Operator] = field(default_factory=dict)
    kernels: dict[str, Operator] = field(default_factory=dict)
    facts: dict[str, Fact] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    memory: list[Memory] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    emulated: bool = False

    def tell(self, line: str) -> None:
        """Note what the reader of the report has to know."""
        if line not in self.notes:
            self.notes.append(line)

    def found(self, name: str, amount: float, what: str = "", places: Iterable[str] = ()) -> None:
        """Note a sign of so many microseconds of a step."""
        if amount > 0 and self.step:
            self.facts[name] = Fact(amount, self.step, what, tuple(dict.fromkeys(filter(None, places)))[:3])


def place_of(stack: str) -> str:
    """The innermost frame of the program in a call stack of torch_npu's, as ``file:line function``."""
    for frame in stack.split(";"):
        match = _FRAME.match(frame.strip())
        if match and not _INSTALLED.search(match["file"]):
            return f"{match['file']}:{match['line']} {match['function']}"
    return ""


def of_program(file: str) -> bool:
    """Whether a file is the program's own, and no installed package's."""
    return not _INSTALLED.search(file)


class Spans:
    """Stretches of time, in the order in which they came: two numbers each."""

    def __init__(self) -> None:
        self._ends = array("d")

    def add(self, start: float, end: float) -> None:
        """One more; one that goes on where the last one ended makes that longer."""
        ends = self._ends
        if ends and ends[-2] <= start <= ends[-1]:
            ends[-1] = max(ends[-1], end)
        else:
            ends.extend((start, end))

    def merged(self) -> list[tuple[float, float]]:
        """All of them in order, without what is in two."""
        found: list[tuple[float, float]] = []
        pairs = iter(self._ends)
        for start, end in sorted(zip(pairs, pairs)):
            if found and start <= found[-1][1]:
                found[-1] = (found[-1][0], max(end, found[-1][1]))
            else:
                found.append((start, end))
        return found


def common(one: list[tuple[float, float]], other: list[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """What two lists of stretches, each in order, have in common."""
    i = j = 0
    while i < len(one) and j < len(other):
        start, end = max(one[i][0], other[j][0]), min(one[i][1], other[j][1])
        if start < end:
            yield start, end
        if one[i][1] < other[j][1]:
            i += 1
        else:
            j += 1


def without(one: list[tuple[float, float]], other: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """What of the first list is not in the second."""
    ends = [-inf, *(end for span in other for end in span), inf]
    return list(common(one, list(zip(ends[::2], ends[1::2]))))


def length(spans: Iterable[tuple[float, float]]) -> float:
    """How long they are together."""
    return sum(end - start for start, end in spans)
