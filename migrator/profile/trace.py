"""Traces: ``trace_view.json`` of torch_npu, and what torch.profiler exports of a run on GPUs."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import Any

from migrator.language import _
from migrator.profile.model import Operator, Operators, Profile, Spans, place_of
from migrator.profile.streams import events

_LOADING = "enumerate(DataLoader)"  # the beginning of torch's own mark
_COMPILING = "AscendCL@aclopCompile"
_TO_CPU = "aten::_to_cpu"  # what torch calls for the arguments of an operator that the CPU computes
_ON_NPU = {"Computing": "compute", "Communication": "communication"}
_CORES = ("AI_", "MIX_", "EMULATED")  # beginnings of types of tasks that compute
_ON_GPU = ("kernel", "gpu_memcpy", "gpu_memset")
_MOST = 1 << 26  # numbers of operators that are kept


def read_trace(path: Path, profile: Profile, moments: Sequence[float] = ()) -> dict[float, dict[str, str]]:
    """Add to a profile what a trace shows, in one pass; what its tables say of it already stays.

    Gives, for each of the ``moments``, the ``line`` and the ``module`` that ran. Raises ProfileError.
    """
    trace = _Trace(profile, sorted(moments))
    for event in events(path, profile.notes):
        try:
            trace.take(event)
        except (AttributeError, KeyError, TypeError, ValueError):
            continue  # an event without what its kind has
    trace.spans.divide(profile)
    profile.kernels = profile.kernels or trace.kernels
    if not profile.parts.get("compute"):
        profile.notes.append(_("no kernel was recorded: what the device does is not known"))
    if profile.steps and profile.device == "NPU":
        profile.found("fallback", profile.parts.get("fallback", 0.0), trace.on_cpu.values())
        profile.found("compile", trace.compiling / profile.steps)
        profile.found("garbage", trace.garbage / profile.steps)
    return trace.at


class _Trace:
    """What the events of a trace come to; times in microseconds."""

    def __init__(self, profile: Profile, moments: Sequence[float]) -> None:
        self._profile, self._moments = profile, moments
        self.spans = Spans()
        self.kernels: Operators = {}
        self.on_cpu: Operators = {}
        self.compiling = self.garbage = 0.0
        self.at: dict[float, dict[str, str]] = {}
        self._innermost: dict[tuple[float, str], float] = {}
        self._processes: dict[Any, str] = {}
        self._to_cpu: list[tuple[Any, float, float]] = []
        self._names: dict[str, int] = {}
        self._known: list[str] = []
        self._operator = array("i")  # by External id: the number of a name

    def take(self, event: dict[str, Any]) -> None:
        """Note one event. Raises an error of Python where it lacks something."""
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
            self._gpu(name[:200], start, end, category, arguments)
        elif category in ("cpu_op", "user_annotation"):
            if name.startswith("ProfilerStep#"):
                self.spans.add("step", start, end)
            elif name.startswith(_LOADING):
                self.spans.add("data", start, end)
            elif category == "cpu_op":
                self._operator_of(name, start, end, event.get("tid"), arguments)
        elif category == "python_function" and name.startswith("nn.Module: "):
            self._run_at(start, end, "module", name.removeprefix("nn.Module: "))
        elif process == "Overlap Analysis" and name in _ON_NPU:
            self.spans.add(_ON_NPU[name], start, end)
        elif process.startswith("Ascend Hardware"):
            if str(arguments["Task Type"]).startswith(_CORES):
                self.kernels.setdefault(name, Operator(name, arguments["Task Type"])).add(1, end - start)
        elif process == "Python GC":
            self.garbage += end - start
        elif name.startswith(_COMPILING):
            self.compiling += end - start

    def _operator_of(self, name: str, start: float, end: float, thread: Any, arguments: Any) -> None:
        stack, number = str(arguments.get("Call stack", "")), arguments.get("External id")
        if name == _TO_CPU:
            self._to_cpu = [*self._to_cpu[-63:], (thread, start, end)]
        elif name.startswith("aten::") and self._to_cpu:  # an operator comes behind those that it calls
            inside = [one for one in self._to_cpu if one[0] == thread and start <= one[1] and one[2] <= end]
            if inside:
                self._to_cpu = [one for one in self._to_cpu if one not in inside]
                self.spans.add("fallback", start, end)
                self.on_cpu.setdefault(name, Operator(name)).add(1, 0.0, end - start, place_of(stack))
        if stack and self._moments:
            self._run_at(start, end, "line", place_of(stack))
        if isinstance(number, int) and 0 <= number < _MOST:
            self._operator.extend(array("i", [-1]) * (number + 1 - len(self._operator)))
            if name not in self._names:
                self._names[name] = len(self._known)
                self._known.append(name)
            self._operator[number] = self._names[name]

    def _run_at(self, start: float, end: float, what: str, name: str) -> None:
        """Note what runs at the moments of a stretch; the shortest stretch is the innermost."""
        first = bisect_left(self._moments, start)
        for moment in self._moments[first : bisect_left(self._moments, end, first)] if name else ():
            if end - start < self._innermost.get((moment, what), inf):
                self._innermost[moment, what] = end - start
                self.at.setdefault(moment, {})[what] = name

    def _gpu(self, name: str, start: float, end: float, category: object, arguments: Any) -> None:
        self._profile.device = "GPU"
        if category == "kernel" and "nccl" in name.lower():
            self.spans.add("communication", start, end)
            return
        self.spans.add("compute", start, end)
        self.kernels.setdefault(name, Operator(name)).add(1, end - start)
        number = int(
            arguments.get("External id", -1)
        )  # of the operator that launched it, which comes before it
        if 0 <= number < len(self._operator) and self._operator[number] >= 0:
            operator = self._known[self._operator[number]]
            self._profile.operators.setdefault(operator, Operator(operator)).add(1, end - start)
