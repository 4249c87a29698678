"""The memory of the NPUs: its peak, whether it fits, and how far the batch size can go."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Optional

from migrator.data_folders import reports_yaml
from migrator.insight.recorded import Memory, Recorded, Sum
from migrator.insight.rows import NOWHERE, Row, Run, Tally, size, text

KIND = "memory"
_LIMITS = (32, 64)  # GiB
_GIB = 1 << 30
# What CANN, its workspaces and the gaps between blocks take besides the tensors.
_FREE = 0.9


def find(run: Run) -> Iterator[Row]:
    """A row for each NPU whose peak does not fit into the smallest memory of the product line."""
    limit = min(reports_yaml("insight.yaml")["product_lines"][run.hardware]["memory"])
    for process in run.processes:
        for device, memory in process.memory.items():
            if memory.peak <= limit * _GIB * _FREE:
                continue
            placed = [held for held in memory.held if held.place is not None]
            largest = max(placed, key=lambda held: held.bytes, default=None)
            place, part, number = (largest.place, largest.bytes, largest.number) if largest else (None, 0, 0)
            words = {"peak": size(memory.peak), "device": device, "limit": f"{limit} GiB"}
            message = text(KIND, "full", **words, part=size(part), number=number)
            batch = largest_batch(process, memory, limit)
            advice = text(KIND, "advice_to", batch=batch) if batch else text(KIND, "advice")
            tally = Tally(place or NOWHERE, Sum(number, memory.peak), None, [process.who])
            yield tally.row(KIND, "warning", f"NPU {device}", message, advice)


def facts(run: Run) -> list[dict[str, Any]]:
    """Of each NPU: peaks, the largest tensors with their places, what fits, and how far the batch can go."""
    found = []
    for process in run.processes:
        for device, memory in process.memory.items():
            held = sorted(memory.held, key=lambda each: -each.bytes)[:20]
            found.append(
                {
                    "rank": process.who,
                    "device": device,
                    "peaks": dict(memory.peaks),
                    "reserved": memory.reserved,
                    "kept_between_steps": memory.kept,
                    "fits": {f"{limit} GiB": memory.peak <= limit * _GIB * _FREE for limit in _LIMITS},
                    "batch": batch_of(process),
                    "largest_batch": {
                        f"{limit} GiB": largest_batch(process, memory, limit) for limit in _LIMITS
                    },
                    "tensors": [
                        {
                            "file": each.place.file if each.place else None,
                            "line": each.place.line if each.place else None,
                            "operator": each.operator,
                            "bytes": each.bytes,
                            "number": each.number,
                        }
                        for each in held
                    ],
                }
            )
    return found


def batch_of(process: Recorded) -> Optional[int]:
    """The first size of the largest tensor that goes to the NPU in each step."""
    copies = [r for r in process.records if r.crossing.startswith("to_npu") and r.later.calls and r.examples]
    largest = max(copies, key=lambda record: record.later.bytes / record.later.calls, default=None)
    shape = largest.examples[0].partition(">")[2] or largest.examples[0].split()[0] if largest else ""
    first = shape.split("x")[0]
    return int(first) if first.isdigit() and "x" in shape else None


def largest_batch(process: Recorded, memory: Memory, limit: int) -> Optional[int]:
    """About how large a batch can be: what a step adds to what stays is taken as proportional to it."""
    batch = batch_of(process)
    if batch is None or memory.kept is None or memory.peak <= memory.kept:
        return None
    room = limit * _GIB * _FREE - memory.kept
    return max(0, int(batch * room / (memory.peak - memory.kept)))
