"""What is known of a profile: of a mean step, in microseconds; of memory, in bytes."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field

from migrator.data_folders import reports_yaml
from migrator.insight.rows import size
from migrator.language import _

PARTS: dict[str, str] = reports_yaml("profile.yaml")["parts"]
_FRAME = re.compile(r"(.+?\.py)\((\d+)\): ((?s:.+))")
# torch.profiler leaves out the folder of Python's own modules.
_STDLIB = "|".join(getattr(sys, "stdlib_module_names", ("threading", "contextlib")))
_INSTALLED = re.compile(rf"(?:site|dist)-packages|/lib/python3|^<|^torch(?:_npu)?/|^(?:{_STDLIB})(?:/|\.py$)")


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

    def has(self, component: str, amount: float) -> None:
        """Note what a component besides the allocator has at some time; the most counts."""
        self.besides[component] = max(self.besides.get(component, 0.0), amount)


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
        values = {"what": ", ".join(dict.fromkeys(one.name for one in order)), "device": self.device}
        if in_:
            values = {"device": in_.device, "amount": size(amount), "reserved": size(whole)}
        said, places = _(text["what"], **values), dict.fromkeys(one.place for one in order if one.place)
        gain = text["gain"] * amount
        do = _(text["do"] if self.device == "NPU" else text.get("gpu", text["do"]))
        advice = Advice(sign, in_ is not None, gain, gain / (whole or 1), said, do, list(places))
        self.advice.append(advice)


def place_of(stack: str) -> str:
    """The innermost frame of the program in a call stack of a profiler, as ``file:line function``."""
    for frame in stack.split(";"):
        match = _FRAME.fullmatch(frame.strip())
        if match and not _INSTALLED.search(match[1]):
            return f"{match[1]}:{match[2]} {match[3]}"
    return ""
