"""What a run's products, bytes and memory come to on a product line: how long a step takes, and what fits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Optional

from migrator.data_folders import reports_yaml
from migrator.insight.recorded import Held, Memory, Recorded, Sum
from migrator.insight.rows import HALVES, NOWHERE, Row, Run, Tally, size

_LIMITS = (32, 64)  # GiB
_GIB = 1 << 30
# What CANN, its workspaces and the gaps between blocks take besides the tensors.
_FREE = 0.9
_PLACES = 10
_TENSORS = 20


def too_large(run: Run) -> Iterator[Row]:
    """A row for each NPU whose peak does not fit into the smallest memory of the product line."""
    limit = min(reports_yaml("insight.yaml")["product_lines"][run.hardware]["memory"])
    for process in run.processes:
        for device, memory in process.memory.items():
            if _fits(memory, limit):
                continue
            placed = (held for held in memory.held if held.place is not None)
            largest = max(placed, key=lambda held: held.bytes, default=Held(None, "", 0, 0))
            batch = _largest_batch(process, memory, limit)
            words = {"peak": size(memory.peak), "device": device, "limit": f"{limit} GiB", "batch": batch}
            words |= {"part": size(largest.bytes), "number": largest.number}
            tally = Tally(largest.place or NOWHERE, Sum(largest.number, memory.peak), None, [process.who])
            advice = "full_advice_to" if batch else "full_advice"
            yield tally.row("memory", "warning", f"NPU {device}", "full", words, advice)


def _fits(memory: Memory, limit: int) -> bool:
    return memory.peak <= limit * _GIB * _FREE


def memory_facts(run: Run) -> list[dict[str, Any]]:
    """Of each NPU: peaks, the largest tensors with their places, what fits, and how far the batch can go."""
    return [
        {
            "rank": process.who,
            "device": device,
            "peaks": dict(memory.peaks),
            "reserved": memory.reserved,
            "kept_between_steps": memory.kept,
            "fits": {f"{limit} GiB": _fits(memory, limit) for limit in _LIMITS},
            "batch": _batch_of(process),
            "largest_batch": {f"{limit} GiB": _largest_batch(process, memory, limit) for limit in _LIMITS},
            "tensors": [
                {
                    "file": each.place.file if each.place else None,
                    "line": each.place.line if each.place else None,
                    "operator": each.operator,
                    "bytes": each.bytes,
                    "number": each.number,
                }
                for each in sorted(memory.held, key=lambda each: -each.bytes)[:_TENSORS]
            ],
        }
        for process in run.processes
        for device, memory in process.memory.items()
    ]


def _batch_of(process: Recorded) -> Optional[int]:
    """The first size of the largest tensor that goes to the NPU in each step."""
    copies = [r for r in process.records if r.crossing.startswith("to_npu") and r.later.calls and r.examples]
    largest = max(copies, key=lambda record: record.later.bytes / record.later.calls, default=None)
    shape = largest.examples[0].partition(">")[2] or largest.examples[0].split()[0] if largest else ""
    first = shape.split("x")[0]
    return int(first) if first.isdigit() and "x" in shape else None


def _largest_batch(process: Recorded, memory: Memory, limit: int) -> Optional[int]:
    """About how large a batch can be: what a step adds to what stays is taken as proportional to it."""
    batch = _batch_of(process)
    if batch is None or memory.kept is None or memory.peak <= memory.kept:
        return None
    room = limit * _GIB * _FREE - memory.kept
    return max(0, int(batch * room / (memory.peak - memory.kept)))


def step_time(run: Run) -> Optional[dict[str, Any]]:
    """The estimate, with its range and what it assumes; None without a step after the first."""
    process = max(run.processes, key=lambda each: each.steps)
    steps = process.steps - 1
    if steps < 1:
        return None
    data = reports_yaml("insight.yaml")
    line, ways = data["product_lines"][run.hardware], data["roofline"]
    speed, bandwidth = ([1e12 * each for each in line[name]] for name in ("matrix", "bandwidth"))
    worst: dict[tuple[str, int], float] = defaultdict(float)  # seconds by file and line
    best = 0.0
    bound = {"products": 0.0, "memory": 0.0}  # the time at peak speed in which it waits for each of them
    for record in process.records:
        if record.crossing:
            continue
        halves = not record.types or set(record.types).intersection(HALVES)
        operations = 2.0 * record.later.multiply_adds / (1 if halves else ways["float32"])
        low, high = (
            max(
                operations / (speed[end] * ways["matrix"][end]),
                record.later.bytes / (bandwidth[end] * ways["bandwidth"][end]),
            )
            for end in (0, 1)
        )
        worst[(record.place.file, record.place.line) if record.place else ("", 0)] += low / steps
        best += high / steps
        products, memory = operations / speed[1], record.later.bytes / bandwidth[1]
        bound["products" if products > memory else "memory"] += max(products, memory)
    late = [record.later for record in process.records]
    whole, at_peak = sum(worst.values()), sum(bound.values())
    bounds = {
        f"{end}_{name}": ways[name][number]
        for name in ("matrix", "bandwidth")
        for number, end in enumerate(("low", "high"))
    }
    return {
        "product_line": run.hardware,
        "figures": line,
        "rank": process.who,
        "multiply_adds": sum(each.multiply_adds for each in late) / steps,
        "bytes": sum(each.bytes for each in late) / steps,
        "seconds": {"at_best": best, "at_worst": whole},
        "bound_by": {name: part / at_peak if at_peak else 0.0 for name, part in bound.items()},
        "places": [
            {"file": file, "line": number, "share": seconds / max(1e-30, whole)}
            for (file, number), seconds in sorted(worst.items(), key=lambda item: -item[1])[:_PLACES]
        ],
        "assumptions": [text.format(**bounds) for text in ways["assumptions"]],
    }
