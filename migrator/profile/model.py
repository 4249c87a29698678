"""What is known of a profile: of a mean step, in microseconds; of memory, in bytes."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import merge

from migrator.data_folders import reports_yaml
from migrator.insight.rows import size
from migrator.language import _

# Of a step, in the order in which a moment belongs to them.
PARTS = ("compute", "communication", "bubble", "data", "fallback", "host")
_FRAME = re.compile(r"(?P<file>.+?)\((?P<line>\d+)\): (?P<function>.+)")
_INSTALLED = re.compile(r"site-packages|dist-packages|/lib/python3|^<|^torch(?:_npu)?/")


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
        self.calls, self.device, self.host = self.calls + calls, self.device + device, self.host + host
        if place:
            self.places[place] = self.places.get(place, 0.0) + (device or host)

    @property
    def place(self) -> str:
        """The line of the program that costs most, with its function; empty where none is known."""
        return max(self.places, key=lambda place: self.places[place], default="")


Operators = dict[str, Operator]


@dataclass
class Advice:
    """One thing to change. ``gain`` is in microseconds of a step or, of memory, in bytes; 0 is not known."""

    sign: str
    memory: bool
    gain: float
    share: float
    what: str
    do: str
    places: list[str]


@dataclass
class Memory:
    """The memory of one device: at its peak, or when a snapshot was taken."""

    device: str
    allocated: float = 0.0
    reserved: float = 0.0
    unused: float = 0.0  # reserved by the allocator and not in use, when it reserved most
    when: float = 0.0
    refused: float = 0.0  # the request that ended in an out-of-memory error
    besides: dict[str, float] = field(default_factory=dict)  # by component
    holders: Operators = field(default_factory=dict)  # `device` is bytes here
    modules: dict[str, float] = field(default_factory=dict)


@dataclass
class Profile:
    """One rank's profile. ``steps`` is 0 for what has no time: a memory snapshot."""

    path: str
    device: str = "NPU"
    rank: str = ""
    emulated: bool = False
    steps: int = 0
    marked: bool = True  # else it is all that was recorded
    step: float = 0.0
    parts: dict[str, float] = field(default_factory=dict)
    communication: float = 0.0  # also what computing hides
    operators: Operators = field(default_factory=dict)
    kernels: Operators = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    memory: list[Memory] = field(default_factory=list)
    advice: list[Advice] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def found(self, sign: str, amount: float, of: Iterable[Operator] = (), in_: Memory | None = None) -> None:
        """Advise on a sign of so many microseconds of a step, or bytes in a memory; ``of`` operators show it.

        ``reports/profile.yaml`` says from when on it is worth it, and what.
        """
        text, whole = reports_yaml("profile.yaml")["signs"][sign], in_.reserved if in_ else self.step
        if amount <= 0 or amount < max(text["least"] * whole, text.get("bytes", 0)):
            return
        order = sorted(of, key=lambda one: -(one.device or one.host))[:3]
        values = {"what": ", ".join(dict.fromkeys(one.name for one in order))}
        if in_:
            values = {"device": in_.device, "amount": size(amount), "reserved": size(whole)}
        said, places = _(text["what"], **values), dict.fromkeys(one.place for one in order if one.place)
        gain = text["gain"] * amount
        advice = Advice(sign, in_ is not None, gain, gain / (whole or 1), said, _(text["do"]), list(places))
        self.advice.append(advice)

    def per_step(self) -> None:
        """Make sums over all steps those of a mean step."""
        for one in (*self.operators.values(), *self.kernels.values()):
            one.calls, one.device, one.host = (x / self.steps for x in (one.calls, one.device, one.host))
            one.places = {place: time / self.steps for place, time in one.places.items()}


def of_program(file: str) -> bool:
    """Whether a file is the program's own, and no installed package's."""
    return not _INSTALLED.search(file)


def place_of(stack: str) -> str:
    """The innermost frame of the program in a call stack of torch_npu's, as ``file:line function``."""
    for frame in stack.split(";"):
        match = _FRAME.fullmatch(frame.strip())
        if match and of_program(match["file"]):
            return f"{match['file']}:{match['line']} {match['function']}"
    return ""


class Spans:
    """Stretches of time of each kind: of a step, and of the parts that fill it."""

    def __init__(self) -> None:
        self._ends: dict[str, array[float]] = {}

    def add(self, kind: str, start: float, end: float) -> None:
        """One more; one that begins within the last of its kind makes that longer, but a step."""
        ends = self._ends.setdefault(kind, array("d"))
        if ends and ends[-2] <= start <= ends[-1] and kind != "step":
            ends[-1] = max(ends[-1], end)
        else:
            ends.extend((start, end))

    def divide(self, profile: Profile) -> None:
        """Divide the steps among the parts: a moment is the first one's that has it, or the host's.

        Without steps all is one step. What a profile has of its parts already stays.
        """
        busy = [ends for kind, ends in self._ends.items() if kind in PARTS[:2]]
        if busy and "step" not in self._ends:
            self.add("step", min(map(min, busy)), max(map(max, busy)))
            profile.marked = False
        if "step" not in self._ends:
            return
        spent, running = dict.fromkeys(PARTS, 0.0), Counter[str]()
        last = communication = 0.0
        for time, change, kind in merge(*map(self._edges, self._ends)):
            if running["step"]:
                spent[next((part for part in PARTS if running[part]), "host")] += time - last
                communication += (time - last) * running["communication"]
            running[kind] += change
            last = time
        steps = len(self._ends["step"]) // 2
        spent = {part: time / steps for part, time in spent.items()}
        if not profile.parts:
            profile.steps, profile.step, profile.parts = steps, sum(spent.values()), spent
            profile.communication = communication / steps
            if not busy:
                spent["host"] = 0.0  # what the device does meanwhile is not known
            return
        for part in ("data", "fallback"):  # a table says how long the device waited, a trace for what
            profile.parts[part] = min(profile.parts["host"], spent[part])
            profile.parts["host"] -= profile.parts[part]

    def _edges(self, kind: str) -> Iterator[tuple[float, int, str]]:
        """When there is one of a kind and when no longer, in order."""
        ends = self._ends[kind]
        until = None
        for place in sorted(range(0, len(ends), 2), key=ends.__getitem__):
            start, end = ends[place], ends[place + 1]
            if until is not None and start <= until:
                until = max(until, end)
                continue
            if until is not None:
                yield until, -1, kind
            yield start, 1, kind
            until = end
        if until is not None:
            yield until, -1, kind
