"""The ``.db`` files of torch_npu's profiler: ``ascend_pytorch_profiler*.db`` and ``analysis.db``."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from migrator.profile.memory import note_record
from migrator.profile.model import Memory, Operator, Profile, Spans, place_of
from migrator.profile.streams import unreadable

_VALUE = "(SELECT value FROM STRING_IDS WHERE id = {})"
# What is asked, by the tables that it needs.
_KERNELS = (
    f"SELECT {_VALUE.format('c.opType')}, {_VALUE.format('c.taskType')}, t.startNs, t.endNs, "
    f"{_VALUE.format('c.inputDataTypes')} FROM COMPUTE_TASK_INFO c JOIN TASK t USING (globalTaskId)"
)
_CALLS = (
    f"SELECT {_VALUE.format('a.name')}, count(*), sum(a.endNs - a.startNs), (SELECT group_concat(v, ';') "
    f"FROM (SELECT {_VALUE.format('s.stack')} v FROM PYTORCH_CALLCHAINS s WHERE s.id = a.callchainId "
    "ORDER BY s.stackDepth)) FROM PYTORCH_API a WHERE a.type = 50001 GROUP BY a.name, a.callchainId"
)
_MEMORY = (
    f"SELECT {_VALUE.format('component')}, 'NPU:' || deviceId, timestamp / 1000.0, totalAllocated, "
    "totalReserved, totalActive FROM MEMORY_RECORD ORDER BY timestamp"
)
_STEPS = "SELECT computing, communication_not_overlapped, bubble, free, communication FROM StepTraceTime"
_SPANS = {
    "step": ("STEP_TIME", "SELECT startNs, endNs FROM STEP_TIME"),
    "communication": ("COMMUNICATION_OP", "SELECT startNs, endNs FROM COMMUNICATION_OP ORDER BY startNs"),
}


def read_database(file: Path, profile: Profile) -> None:
    """Add what a database has; what it lacks is left out. One that is broken is told in one line."""
    from migrator.profile.npu import note_kernel, note_steps

    spans = Spans()
    address = f"file:{file.resolve().as_posix()}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(address, uri=True)) as base:
            tables = {name for (name,) in base.execute("SELECT name FROM sqlite_master")}

            def asked(query: str, *needed: str) -> Iterator[tuple[Any, ...]]:
                return iter(base.execute(query) if tables.issuperset(needed) else ())

            for name, core, start, end, types in asked(_KERNELS, "COMPUTE_TASK_INFO", "TASK"):
                note_kernel(profile, str(name), str(core or ""), 1, (end - start) / 1000, str(types or ""))
                spans.add("compute", start / 1000, end / 1000)
            for kind, (table, query) in _SPANS.items():
                for start, end in asked(query, table):
                    spans.add(kind, start / 1000, end / 1000)
            for name, calls, time, stack in asked(_CALLS, "PYTORCH_API", "PYTORCH_CALLCHAINS"):
                one = profile.operators.setdefault(str(name), Operator(str(name)))
                one.add(calls, 0.0, time / 1000, place_of(str(stack or "")))
            found: dict[str, Memory] = {}
            for record in asked(_MEMORY, "MEMORY_RECORD"):
                note_record(found, *record)
            profile.memory += [memory for memory in found.values() if memory.reserved]
            note_steps(profile, list(asked(_STEPS, "StepTraceTime")))
    except (sqlite3.Error, TypeError, UnicodeError) as error:
        profile.notes.append(unreadable(file, error))
    if not profile.parts:
        spans.divide(profile)
