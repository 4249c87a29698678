"""Traces: ``trace_view.json`` of torch_npu, and what torch.profiler exports of a run on GPUs."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from migrator.language import N_, _
from migrator.profile.model import Operator, Profile, Spans, common, length, place_of, without
from migrator.profile.streams import ProfileError, events

_STEP = re.compile(r"ProfilerStep#(\d+)")
_LOADING = "enumerate(DataLoader)"  # the name of torch's own mark, and how it goes on
_COMPILING = "AscendCL@aclopCompile"
_TO_CPU = "aten::_to_cpu"  # what torch calls for the arguments of an operator that the CPU computes
_ON_NPU = {"Computing": "computing", "Communication": "communication", "Free": "free"}
_CORES = ("AI_", "MIX_", "EMULATED")  # beginnings of types of tasks that compute
_GPU = ("kernel", "gpu_memcpy", "gpu_memset")
_MOST_NAMES = 1 << 26  # numbers of operators that are kept


@dataclass
class Trace:
    """What the events of a trace come to; times in microseconds."""

    steps: list[tuple[float, float]] = field(default_factory=list)
    computing: Spans = field(default_factory=Spans)
    communication: Spans = field(default_factory=Spans)
    free: Spans = field(default_factory=Spans)
    loading: Spans = field(default_factory=Spans)
    fallback: Spans = field(default_factory=Spans)
    garbage: float = 0.0
    compiling: float = 0.0
    on_cpu: dict[str, Operator] = field(default_factory=dict)
    kernels: dict[str, Operator] = field(default_factory=dict)
    operators: dict[str, Operator] = field(default_factory=dict)
    gpu: bool = False
    emulated: bool = False
    at: dict[float, tuple[str, str]] = field(default_factory=dict)  # by a moment: the line and the module


def read_trace(path: Path, profile: Profile, moments: Sequence[float] = ()) -> Trace:
    """Read a trace once. Of ``moments`` it is told which line and which module ran. Raises ProfileError."""
    trace, reader = Trace(), _Reader(sorted(moments))
    for event in events(path, profile.tell):
        kind, name = event.get("ph"), str(event.get("name", ""))
        if kind == "M" and name == "process_name":
            reader.process(event, trace)
        elif kind == "X":
            try:
                start = float(event.get("ts", 0))
                end = start + float(event.get("dur") or 0)
            except (TypeError, ValueError):
                continue
            reader.take(trace, name, start, end, event)
    reader.name_gpu_operators(trace)
    trace.steps.sort()
    trace.at = {moment: (line, module) for moment, (_line, line, _module, module) in reader.at.items()}
    return trace


class _Reader:
    def __init__(self, moments: Sequence[float]) -> None:
        self.moments = moments
        self.at: dict[float, tuple[float, str, float, str]] = {}
        self.processes: dict[Any, str] = {}
        self.to_cpu: list[tuple[Any, float, float]] = []
        self.names: dict[str, int] = {}
        self.operator_of = array("i")  # by External id: the number of a name
        self.waiting: dict[int, list[float]] = {}  # by External id: kernels and their time

    def process(self, event: dict[str, Any], trace: Trace) -> None:
        name = str((event.get("args") or {}).get("name", ""))
        self.processes[event.get("pid")] = name
        trace.emulated = trace.emulated or "emulated" in name

    def take(self, trace: Trace, name: str, start: float, end: float, event: dict[str, Any]) -> None:
        category = event.get("cat")
        if category in _GPU:
            return self.gpu(trace, name, start, end, event)
        process = self.processes.get(event.get("pid"), "")
        if category == "cpu_op":
            self.operator(trace, name, start, end, event)
        elif process == "Overlap Analysis" and name in _ON_NPU:
            getattr(trace, _ON_NPU[name]).add(start, end)
        elif process.startswith("Ascend Hardware"):
            core = str((event.get("args") or {}).get("Task Type", ""))
            if core.startswith(_CORES):
                trace.kernels.setdefault(name, Operator(name, core)).add(1, end - start)
        elif process == "Python GC":
            trace.garbage += end - start
        elif name.startswith(_COMPILING):
            trace.compiling += end - start
        if category == "python_function" and name.startswith("nn.Module: "):
            self.run_at(start, end, module=name.removeprefix("nn.Module: "))
        elif category in ("cpu_op", "user_annotation"):
            if _STEP.match(name):
                trace.steps.append((start, end))
            elif name.startswith(_LOADING):
                trace.loading.add(start, end)

    def operator(self, trace: Trace, name: str, start: float, end: float, event: dict[str, Any]) -> None:
        arguments = event.get("args") or {}
        stack = str(arguments.get("Call stack", ""))
        # An operator comes behind those that it calls.
        inside = [
            one for one in self.to_cpu if one[0] == event.get("tid") and start <= one[1] and one[2] <= end
        ]
        if name == _TO_CPU:
            self.to_cpu = [*self.to_cpu[-63:], (event.get("tid"), start, end)]
        elif inside and name.startswith("aten::"):
            self.to_cpu = [one for one in self.to_cpu if one not in inside]
            trace.fallback.add(start, end)
            trace.on_cpu.setdefault(name, Operator(name)).add(1, 0.0, end - start, place_of(stack))
        if self.moments and stack:
            self.run_at(start, end, line=place_of(stack))
        number = arguments.get("External id")
        if isinstance(number, int) and 0 <= number < _MOST_NAMES:
            if number >= len(self.operator_of):
                self.operator_of.extend([-1] * max(1024, number - len(self.operator_of) + 1))
            self.operator_of[number] = self.names.setdefault(name, len(self.names))

    def run_at(self, start: float, end: float, line: str = "", module: str = "") -> None:
        """Note what runs at the moments in a stretch; the shortest stretch is the innermost."""
        first = bisect_left(self.moments, start)
        for moment in self.moments[first : bisect_left(self.moments, end, first)]:
            line_length, known_line, module_length, known = self.at.get(moment, (end, "", end, ""))
            if line and (not known_line or end - start < line_length):
                line_length, known_line = end - start, line
            if module and (not known or end - start < module_length):
                module_length, known = end - start, module
            self.at[moment] = (line_length, known_line, module_length, known)

    def gpu(self, trace: Trace, name: str, start: float, end: float, event: dict[str, Any]) -> None:
        trace.gpu = True
        if event.get("cat") == "kernel" and "nccl" in name.lower():
            return trace.communication.add(start, end)
        trace.computing.add(start, end)
        trace.kernels.setdefault(name[:200], Operator(name[:200])).add(1, end - start)
        number = (event.get("args") or {}).get("External id")
        if isinstance(number, int):
            waiting = self.waiting.setdefault(number, [0, 0.0])
            waiting[0] += 1
            waiting[1] += end - start

    def name_gpu_operators(self, trace: Trace) -> None:
        """Give the time of kernels to the operators that launched them."""
        names = list(self.names)
        for number, (calls, time) in self.waiting.items():
            if 0 <= number < len(self.operator_of) and (known := self.operator_of[number]) >= 0:
                trace.operators.setdefault(names[known], Operator(names[known])).add(calls, time)


def split_step(profile: Profile, trace: Trace) -> None:
    """Divide a step by what a trace shows. What a table says of it already (``profile.parts``) stays."""
    computing, communication = trace.computing.merged(), trace.communication.merged()
    busy = [*computing, *communication]
    if not profile.step:
        steps = trace.steps or ([(min(busy)[0], max(end for _, end in busy))] if busy else [])
        if not steps:
            raise ProfileError(N_("{path}: neither steps nor kernels are in it"), path=profile.path)
        profile.whole, profile.steps = not trace.steps, len(steps)
        profile.step = length(steps) / len(steps)
    steps = Spans()
    for start, end in trace.steps or ([(min(busy)[0], max(end for _, end in busy))] if busy else []):
        steps.add(start, end)
    inside = steps.merged()
    if busy and not profile.parts:
        alone = without(list(common(communication, inside)), computing)
        profile.parts = {
            "compute": length(common(computing, inside)) / profile.steps,
            "communication": length(alone) / profile.steps,
        }
        profile.communication = length(common(communication, inside)) / profile.steps
    spent = sum(profile.parts.get(part, 0.0) for part in ("compute", "communication", "bubble"))
    left = max(0.0, profile.step - spent)
    if not profile.parts:
        profile.tell(_("no kernel was recorded: all of the step is the host's here"))
    idle = trace.free.merged() or without(without(inside, computing), communication)
    loading, fallback = trace.loading.merged(), trace.fallback.merged()
    data = length(common(idle, loading)) / profile.steps
    on_cpu = length(common(without(idle, loading), fallback)) / profile.steps
    profile.parts["data"] = min(left, data)
    profile.parts["fallback"] = min(left - profile.parts["data"], on_cpu)
    profile.parts["host"] = left - profile.parts["data"] - profile.parts["fallback"]
