"""Operators that torch_npu leaves to the CPU, recorded before the emulator computes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Optional

from migrator.insight.operator_names import lacks_kernel, shown
from migrator.insight.recorded import Record
from migrator.insight.rows import Row, Run, often, size, tallies, text

KIND = "cpu_fallback"


def find(run: Run) -> Iterator[Row]:
    """A row for each operator and place."""
    lacking = {
        record.operator
        for process in run.processes
        for record in process.records
        if lacks_kernel(record.operator, process, run.version, run.ran_with)
    }

    def key(record: Record) -> Optional[Sequence[str]]:
        return [record.operator] if record.by_program and record.operator in lacking else None

    for (operator,), tally in tallies(run, key):
        api, copies = shown(operator, run.version), 2 * tally.amount.calls
        times = often(tally.amount.calls, tally.per_step)
        words = {"api": api, "version": run.version, "often": times, "copies": copies}
        message = text(KIND, "fallback", **words, size=size(tally.amount.bytes))
        advice = text(KIND, "advice")
        yield tally.row(KIND, "warning", api, message, advice, operator=operator, copies=copies)
