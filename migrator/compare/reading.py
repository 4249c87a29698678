"""Reads what the recorder wrote: the processes of a run with their calls, tensors and printed lines."""

from __future__ import annotations

import base64
import json
import math
import re
import sys
import zlib
from array import array
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

from migrator.field_types import fits
from migrator.language import N_, MessageError
from migrator.light import Frozen

RUN = "run.json"
BOOTSTRAP = Path(__file__).parent / "bootstrap"  # what stands in PYTHONPATH lets the recorder begin
_FIELDS = 14  # as in bootstrap/npumigrate_recorder/measuring.py
_WRAPPERS = re.compile(
    r"(?:^|\.)(?:module|_orig_mod|_fsdp_wrapped_module|_checkpoint_wrapped_module)(?=\.|$)"
)


# What a line holds, and a row of it by its kind: a list of one shape, or of these in their order.
_LINE = {"step": int, "first": int, "strings": [str], "kinds": [int], "numbers": str, "rows": [list]}
_ROWS: dict[Any, Any] = {
    "module": (str, int, int, int, int, [int], [int]),
    "api": (str, int, int, int, [int], [int]),
    "optimizer": (str, int, int, str, int),
    "root": (str, int, str, int, [(str, str, dict)], [(str, int)], [(str, str)]),
    **dict.fromkeys(("grad", "given", "left", "line"), (str, int, int)),
    **dict.fromkeys(("settings", "note"), (str, int)),
}


class Tensor(Frozen):
    """The numbers of a tensor."""

    shape: str
    dtype: str
    device: str
    graded: bool
    low: float
    high: float
    sum: float
    squares: float
    nan: int
    inf: int
    sums: tuple[float, ...]

    @property
    def count(self) -> int:
        """How many values it has."""
        return math.prod(map(int, filter(str.isdigit, self.shape.split("x"))))

    @property
    def norm(self) -> float:
        """The root of the sum of all squares."""
        return math.sqrt(max(0.0, self.squares))

    @property
    def floating(self) -> bool:
        """Whether its values are no whole numbers and no truth values."""
        return "float" in self.dtype or "complex" in self.dtype


@dataclass
class Call:
    """A call of a module, or of an API: then ``api`` has its name, and ``said`` its other arguments."""

    label: str = ""
    path: str = ""
    kind: str = ""
    training: bool = False
    api: str = ""
    said: str = ""
    given: list[int] = field(default_factory=list)
    made: list[int] = field(default_factory=list)
    inside: list[Call] = field(default_factory=list)
    order: int = 0

    @property
    def key(self) -> tuple[str, str]:
        """What a module is called, with the label of the module that the program called."""
        return self.label, self.path

    @property
    def place(self) -> str:
        """A module by its path and class."""
        where = f"{self.path} {self.kind}" if self.path else self.kind or "the program"
        return f"{where} ({self.label})" if "." in self.label else where  # one of several of a class


@dataclass
class Step:
    """What was computed up to the step of an optimizer."""

    number: int
    inside: list[Call] = field(default_factory=list)  # calls by the program itself
    grads: list[tuple[int, int]] = field(default_factory=list)  # of a tensor, in order
    given: dict[str, int] = field(default_factory=dict)  # gradients of parameters as the optimizer got them
    optimizers: dict[str, dict[str, Any]] = field(default_factory=dict)
    left: dict[str, int] = field(default_factory=dict)  # parameters and buffers behind it
    joined: dict[str, int] = field(
        default_factory=dict
    )  # those of modules that are called for the first time


@dataclass
class Process:
    """What one process recorded; modules and parameters go by the label of their root and their path."""

    rank: Optional[int]
    settings: dict[str, Any] = field(default_factory=dict)
    tensors: dict[int, Tensor] = field(default_factory=dict)
    modules: dict[tuple[str, str], tuple[str, dict[str, Any]]] = field(default_factory=dict)
    first: dict[str, int] = field(default_factory=dict)  # parameters and buffers before the first step
    shared: dict[str, str] = field(default_factory=dict)  # parameters that are others
    steps: list[Step] = field(default_factory=list)
    lines: list[tuple[int, str]] = field(default_factory=list)  # with the step
    notes: list[str] = field(default_factory=list)


@dataclass
class Trace:
    """A run: its processes that called modules, by rank, or else those that printed something."""

    folder: Path
    about: dict[str, Any]
    processes: list[Process]


def read_trace(folder: Path) -> Trace:
    """Read a trace. Raises MessageError where there is none, or none of a run that used torch."""
    try:
        about = json.loads((folder / RUN).read_bytes())
        " ".join(about["command"])
    except (OSError, ValueError, TypeError, LookupError):
        why = N_("{folder} is not a trace: record one with npumigrate record -o {folder} -- python train.py")
        raise MessageError(why, folder=folder) from None
    found = [process for path in sorted(folder.glob("process-*.jsonl.gz")) if (process := _process(path))]
    processes = [each for each in found if each.modules] or [each for each in found if each.lines]
    if not processes:
        raise MessageError("{folder} is empty: no process of the run called a torch module", folder=folder)
    return Trace(folder, about, sorted(processes, key=lambda each: each.rank or 0))


def clean(path: str) -> str:
    """A path of a module or parameter without those that only wrap another one."""
    return _WRAPPERS.sub("", path).lstrip(".")


def _process(path: Path) -> Optional[Process]:
    """One process; None where its file is damaged from its beginning."""
    process: Optional[Process] = None
    strings: list[str] = []
    table: dict[int, Call] = {}
    kinds: dict[int, tuple[str, str, str, bool]] = {}
    try:
        # The end may be missing, as of a process that was killed.
        *whole, _rest = zlib.decompressobj(wbits=31).decompress(path.read_bytes()).split(b"\n")
        for line in map(json.loads, whole):
            if process is None:
                process = Process(None if line["rank"] is None else int(line["rank"]))
                continue
            if not fits(line, _LINE) or not all(fits(row, _ROWS.get(row[0], list)) for row in line["rows"]):
                raise ValueError(line)
            strings += line["strings"]
            numbers = array("f", base64.b64decode(line["numbers"]))
            if sys.byteorder == "big":
                numbers.byteswap()
            for place, kind in enumerate(line["kinds"]):
                if kind not in kinds:
                    shape, dtype, device, graded = strings[kind].split(" ")
                    kinds[kind] = shape, dtype, device, graded == "1"
                low, high, total, squares, nan, inf, *sums = numbers[place * _FIELDS : (place + 1) * _FIELDS]
                lost = (0, 0) if nan != nan else (int(nan), int(inf))  # what could not be read
                tensor = Tensor(*kinds[kind], low, high, total, squares, *lost, tuple(sums))
                process.tensors[line["first"] + place] = tensor
            _step(process, line, strings, table)
    except (zlib.error, ValueError, LookupError, TypeError, AttributeError, OverflowError):
        if process is not None:
            process.notes.append(f"{path.name} is damaged")
    return process


def _step(process: Process, line: dict[str, Any], strings: list[str], table: dict[int, Call]) -> None:
    """Add what a line has to its step."""
    if not process.steps or process.steps[-1].number != line["step"]:
        process.steps.append(Step(line["step"]))
    step = process.steps[-1]
    inside: dict[int, list[Call]] = {}
    for order, (what, *row) in enumerate(line["rows"]):
        if what == "module":
            number, parent, module, training, given, made = row
            known = table[module]
            call = Call(known.label, known.path, known.kind, bool(training), "", "", given, made, [], order)
            for each in inside.pop(number, []):  # what is in the module that it wraps is in it
                call.inside += each.inside if not each.api and each.key == call.key else [each]
            inside.setdefault(parent, []).append(call)
        elif what == "api":
            parent, name, said, given, made = row
            call = Call("", "", "", False, strings[name], strings[said], given, made, [], order)
            inside.setdefault(parent, []).append(call)
        elif what == "grad":
            step.grads.append((row[0], row[1]))
        elif what == "given":
            step.given[_named(strings[row[0]])] = row[1]
        elif what == "left":
            step.left[_named(strings[row[0]])] = row[1]
        elif what == "optimizer":
            place, group, kind, said = row
            step.optimizers[f"{kind} {place}.{group}"] = {"class": kind, **json.loads(strings[said])}
        elif what == "root":
            _root(process, row, table, step.joined if step.number else process.first)
        elif what == "settings":
            process.settings = dict(json.loads(strings[row[0]]))
        elif what == "line":
            process.lines.append((step.number, strings[row[1]]))
        elif what == "note":
            process.notes.append(strings[row[0]])
    step.inside += [call for calls in inside.values() for call in calls]  # -1, and those that never ended
    step.inside.sort(key=lambda call: call.order)


def _root(process: Process, row: list[Any], table: dict[int, Call], known: dict[str, int]) -> None:
    """A module that the program called, with all below it; its parameters get ``known``."""
    first, label, parent, entries, tensors, shared = row
    for place, (path, kind, settings) in enumerate(entries):
        call = Call(label, clean(path), kind)
        table[first + place] = call
        process.modules[call.key] = kind, settings
    if parent < 0:
        known.update({f"{label} {clean(path)}": tensor for path, tensor in tensors})
        process.shared.update({f"{label} {clean(path)}": clean(other) for path, other in shared})


def _named(name: str) -> str:
    label, _, path = name.partition(" ")
    return f"{label} {clean(path)}"
