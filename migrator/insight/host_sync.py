"""Where the host waits for an NPU in a step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Optional

from migrator.insight.operator_names import names_of, shown
from migrator.insight.recorded import Record, most_steps
from migrator.insight.rows import Row, Run, often, size, tallies, text
from migrator.insight.shapes import by_values

KIND = "host_sync"


def find(run: Run) -> Iterator[Row]:
    """A row for each way and place; only those that come in steps after the first, where there are any."""
    later = most_steps(run.processes) - 1

    def key(record: Record) -> Optional[Sequence[str]]:
        way = _way(record)
        # What warms up comes in one of the steps after the first.
        if not way or not record.by_program or (later > 0 and record.seen_steps < min(later, 2)):
            return None
        return [way, record.operator if way == "by_values" else ""]

    for (way, operator), tally in tallies(run, key):
        api = shown(operator, run.version) if operator else names_of("ways")[way]
        words = {
            "api": api,
            "often": often(tally.amount.calls, tally.per_step),
            "size": size(tally.amount.bytes / max(1, tally.amount.calls)),
        }
        severity, effect = "info" if way == "to_npu" else "warning", tally.per_step or tally.amount.calls
        advice = text(KIND, f"{way}_advice")
        yield tally.row(KIND, severity, api, text(KIND, way, **words), advice, effect, way=way)


def _way(record: Record) -> str:
    if record.place is not None and record.place.through == "print":
        return "print" if record.name == "_local_scalar_dense" or record.crossing else ""
    if record.name in ("_local_scalar_dense", "equal"):
        return "number"
    if record.crossing:
        way, _, blocking = record.crossing.partition(", ")
        return way if blocking else ""
    return "by_values" if by_values(record) else ""
