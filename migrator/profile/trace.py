"""Traces: ``trace_view.json`` of torch_npu, and what torch.profiler exports of a run on GPUs."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from heapq import merge
from itertools import repeat
from math import inf
from pathlib import Path
from sys import intern
from typing import Any

from migrator.language import _
from migrator.profile.model import PARTS, Operator, Operators, Profile, place_of
from migrator.profile.streams import events

_LOADING = "enumerate(DataLoader)"  # the beginning of torch's own mark
_COMPILING = "AscendCL@aclopCompile"
_TO_CPU = "aten::_to_cpu"  # what torch calls for the arguments of an operator that the CPU computes
_ON_NPU = {"Computing": "compute", "Communication": "communication"}
_CORES = ("AI_", "MIX_", "EMULATED")  # beginnings of types of tasks that compute
_ON_GPU = ("kernel", "gpu_memcpy", "gpu_memset")


def read_trace(path: Path, profile: Profile, moments: Iterable[float] = ()) -> dict[float, str]:
    """Add to a profile what a trace shows, in one pass; what its tables say of it already stays.

    Gives the line of the program that ran at each of the ``moments``, where it is known. Raises ProfileError.
    """
    trace = _Trace(profile, sorted(moments))
    for event in events(path, profile.notes):
        with suppress(AttributeError, KeyError, TypeError, ValueError):  # it has not what its kind has
            trace.take(event)
    trace.divide()
    trace.name_calls()
    profile.kernels = profile.kernels or trace.kernels
    if not profile.parts.get("compute"):
        profile.notes.append(_("no kernel was recorded: the work of the device is unknown"))
    if profile.steps and profile.device == "NPU":
        profile.found("fallback", profile.parts.get("fallback", 0.0), trace.on_cpu.values())
        profile.found("compile", trace.compiling / profile.steps)
        profile.found("garbage", trace.garbage / profile.steps)
    return dict(zip(trace.moments, trace.lines(trace.moments)))


class _Trace:
    """What the events of a trace come to; times in microseconds."""

    def __init__(self, profile: Profile, moments: list[float]) -> None:
        self._profile, self.moments = profile, moments
        self.kernels: Operators = {}
        self.on_cpu: Operators = {}
        self.compiling = self.garbage = 0.0
        self._spans: dict[str, array[float]] = {}  # by kind: where each begins and ends
        self._processes: dict[Any, str] = {}
        self._to_cpu: list[tuple[Any, float, float]] = []
        self._calls: list[list[Any]] = []  # when each begins, its name, the times of host and device
        self._numbers: dict[int, list[Any]] = {}  # calls by External id
        self._running: dict[Any, list[tuple[float, list[Any]]]] = {}  # calls by thread, and when they end
        self._frames: list[tuple[float, float, str]] = []

    def take(self, event: dict[str, Any]) -> None:
        """Note one event. Raises an error of Python where something is missing."""
        name, arguments, category = str(event["name"]), event.get("args") or {}, event.get("cat")
        if event["ph"] == "M" and name == "process_name":
            self._processes[event["pid"]] = str(arguments["name"])
            self._profile.emulated |= "emulated" in self._processes[event["pid"]]
        if event["ph"] != "X":
            return
        start, process = float(event["ts"]), self._processes.get(event["pid"], "")
        end = start + float(event.get("dur") or 0)
        if not start <= end < inf:
            return
        if category in _ON_GPU:
            self._on_gpu(name[:200], start, end, category, arguments)
        elif category in ("cpu_op", "user_annotation"):
            if name.startswith("ProfilerStep#"):
                self._add("step", start, end)
            elif name.startswith(_LOADING):
                self._add("data", start, end)
            elif "External id" in arguments:
                self._call(name, start, end, event.get("tid"), arguments["External id"], category == "cpu_op")
            elif category == "cpu_op":
                self._operator(name, start, end, event.get("tid"), arguments)
        elif category == "python_function" and (line := place_of(name)):
            self._frames.append((start, end, intern(line)))
        elif process == "Overlap Analysis" and name in _ON_NPU:
            self._add(_ON_NPU[name], start, end)
        elif process.startswith("Ascend Hardware"):
            if str(arguments["Task Type"]).startswith(_CORES):
                self.kernels.setdefault(name, Operator(name, arguments["Task Type"])).add(1, end - start)
        elif process == "Python GC":
            self.garbage += end - start
        elif name.startswith(_COMPILING):
            self.compiling += end - start

    def _operator(self, name: str, start: float, end: float, thread: Any, arguments: Any) -> None:
        line = place_of(str(arguments.get("Call stack", "")))
        if name == _TO_CPU:
            self._to_cpu = [*self._to_cpu[-63:], (thread, start, end)]
        elif name.startswith("aten::") and self._to_cpu:  # an operator comes behind those that it calls
            inside = [one for one in self._to_cpu if one[0] == thread and start <= one[1] and one[2] <= end]
            if inside:
                self._to_cpu = [one for one in self._to_cpu if one not in inside]
                self._add("fallback", start, end)
                self.on_cpu.setdefault(name, Operator(name)).add(1, 0.0, end - start, line)
        if line and bisect_left(self.moments, start) < bisect_left(self.moments, end):
            self._frames.append((start, end, intern(line)))

    def _call(self, name: str, start: float, end: float, thread: Any, number: int, nested: bool) -> None:
        """A call in a trace of torch.profiler: it comes before those that it makes, and its kernels."""
        call: list[Any] = [start, intern(name), end - start, 0.0]
        self._numbers[number], running = call, self._running.setdefault(thread, [])
        while running and running[-1][0] <= start:
            running.pop()
        if nested and running:
            running[-1][1][2] -= end - start
        if nested:  # a step of the optimizer counts with all that it calls
            running.append((end, call))
        self._calls.append(call)

    def name_calls(self) -> None:
        """Add the calls of torch.profiler to the profile's operators.

        A backward pass in a thread of its own has the line of ``backward()``, which waits for it meanwhile.
        """
        self._calls.sort()
        for (_start, name, host, device), line in zip(self._calls, self.lines(c[0] for c in self._calls)):
            self._profile.operators.setdefault(name, Operator(name)).add(1, device, host, line)
        if self._calls and not self.kernels:
            self._profile.device = "CPU"

    def lines(self, times: Iterable[float]) -> Iterator[str]:
        """The innermost frame of the program at each of the times, which come in order; empty for none."""
        coming, around = sorted(self._frames, reverse=True), list[tuple[float, float, str]]()
        for time in times:
            while coming and coming[-1][0] <= time:
                around.append(coming.pop())
            while around and around[-1][1] <= time:
                around.pop()
            yield around[-1][2] if around else ""

    def _on_gpu(self, name: str, start: float, end: float, category: object, arguments: Any) -> None:
        self._profile.device = "GPU"
        if category == "kernel" and "nccl" in name.lower():
            self._add("communication", start, end)
            return
        self._add("compute", start, end)
        self.kernels.setdefault(name, Operator(name)).add(1, end - start)
        if call := self._numbers.get(arguments.get("External id")):
            call[3] += end - start

    def _add(self, kind: str, start: float, end: float) -> None:
        """A stretch of a step or part; one that begins within the last of its kind makes that longer."""
        ends = self._spans.setdefault(kind, array("d"))
        if ends and ends[-2] <= start <= ends[-1] and kind != "step":
            ends[-1] = max(ends[-1], end)
        else:
            ends.extend((start, end))

    def divide(self) -> None:
        """Divide the steps among the parts: a moment is the first one's that has it, or the host's.

        Without steps all is one step. What the profile has of its parts already stays.
        """
        profile, busy = (
            self._profile,
            [ends for kind, ends in self._spans.items() if kind in _ON_NPU.values()],
        )
        if busy and "step" not in self._spans:
            self._add("step", min(map(min, busy)), max(map(max, busy)))
            profile.marked = False
        steps = len(self._spans.get("step", ())) // 2
        if not steps:
            return
        spent, running, last, communication = dict.fromkeys(PARTS, 0.0), Counter[str](), 0.0, 0.0
        edges = (
            zip(sorted(ends[side::2]), repeat(1 - 2 * side), repeat(kind))
            for kind, ends in self._spans.items()
            for side in (0, 1)
        )
        for time, change, kind in merge(*edges):
            if running["step"]:
                spent[next((part for part in PARTS if running[part]), "host")] += (time - last) / steps
                communication += (time - last) / steps if running["communication"] else 0.0
            running[kind] += change
            last = time
        if not profile.parts:
            profile.steps, profile.step, profile.parts = steps, sum(spent.values()), spent
            profile.communication = communication
            if not busy:
                spent["host"] = 0.0  # what the device does meanwhile is not known
            return
        for part in ("data", "fallback"):  # a table says how long the device waited, a trace for what
            profile.parts[part] = min(profile.parts["host"], spent[part])
            profile.parts["host"] -= profile.parts[part]
