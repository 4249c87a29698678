"""How long a step takes at best and at worst on a product line, from counted products and bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Optional

from migrator.data_folders import reports_yaml
from migrator.insight.operator_names import HALVES
from migrator.insight.recorded import Record, Recorded
from migrator.insight.rows import Run

_SHOWN = 10


def estimate(run: Run) -> Optional[dict[str, Any]]:
    """The estimate, with its range and what it assumes; None without a step after the first."""
    process = max(run.processes, key=lambda each: each.steps)
    if process.steps < 2:
        return None
    data = reports_yaml("insight.yaml")
    line, ways = data["product_lines"][run.hardware], data["roofline"]
    times = {
        end: _seconds(
            process,
            line["matrix"][end] * 1e12 * ways["matrix"][end],
            line["bandwidth"][end] * 1e12 * ways["bandwidth"][end],
            ways["float32"],
        )
        for end in (0, 1)
    }
    steps = process.steps - 1
    late = [record.later for record in process.records]
    bounds = {"low_matrix": ways["matrix"][0], "high_matrix": ways["matrix"][1]}
    bounds |= {"low_bandwidth": ways["bandwidth"][0], "high_bandwidth": ways["bandwidth"][1]}
    slowest = sorted(times[0].items(), key=lambda item: -item[1])[:_SHOWN]
    return {
        "product_line": run.hardware,
        "figures": line,
        "rank": process.who,
        "multiply_adds": sum(each.multiply_adds for each in late) / steps,
        "bytes": sum(each.bytes for each in late) / steps,
        "seconds": {"at_best": sum(times[1].values()), "at_worst": sum(times[0].values())},
        "bound_by": _bound_by(process, line, ways["float32"]),
        "places": [
            {"file": file, "line": number, "share": seconds / max(1e-30, sum(times[0].values()))}
            for (file, number), seconds in slowest
        ],
        "assumptions": [text.format(**bounds) for text in ways["assumptions"]],
    }


def _needs(process: Recorded, float32: float) -> Iterator[tuple[Record, float, float]]:
    """What computes, with its operations in later steps, as ones of half types, and its bytes."""
    for record in process.records:
        if not record.crossing:
            halves = not record.types or set(record.types).intersection(HALVES)
            yield record, 2.0 * record.later.multiply_adds / (1 if halves else float32), record.later.bytes


def _seconds(
    process: Recorded, speed: float, bandwidth: float, float32: float
) -> dict[tuple[str, int], float]:
    found: dict[tuple[str, int], float] = {}
    for record, operations, moved in _needs(process, float32):
        key = (record.place.file, record.place.line) if record.place else ("", 0)
        time = max(operations / speed, moved / bandwidth) / (process.steps - 1)
        found[key] = found.get(key, 0.0) + time
    return found


def _bound_by(process: Recorded, line: dict[str, Any], float32: float) -> dict[str, float]:
    """The parts of the time at peak speed in which products, and in which memory, are what it waits for."""
    speed, bandwidth = line["matrix"][1] * 1e12, line["bandwidth"][1] * 1e12
    parts = {"products": 0.0, "memory": 0.0}
    for _record, operations, moved in _needs(process, float32):
        products, memory = operations / speed, moved / bandwidth
        parts["products" if products > memory else "memory"] += max(products, memory)
    whole = sum(parts.values())
    return {name: part / whole if whole else 0.0 for name, part in parts.items()}
