"""The ``.db`` files of torch_npu's profiler: ``ascend_pytorch_profiler*.db`` and ``analysis.db``."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from migrator.files.errors import shown
from migrator.language import _
from migrator.profile.model import Memory, Operator, Profile, Spans, common, length, place_of, without

_TEXT = "(SELECT value FROM STRING_IDS WHERE id = {})"
_STEPS = "SELECT computing, communication_not_overlapped, bubble, free, communication FROM StepTraceTime"
_KERNELS = (
    f"SELECT {_TEXT.format('c.opType')}, {_TEXT.format('c.taskType')}, t.startNs, t.endNs, "
    f"{_TEXT.format('c.inputDataTypes')} FROM COMPUTE_TASK_INFO c JOIN TASK t ON c.globalTaskId = t.globalTaskId"
)
_CALLS = (
    f"SELECT {_TEXT.format('a.name')}, count(*), sum(a.endNs - a.startNs), (SELECT group_concat("
    f"{_TEXT.format('s.stack')}, ';') FROM PYTORCH_CALLCHAINS s WHERE s.id = a.callchainId ORDER BY s.stackDepth) "
    "FROM PYTORCH_API a WHERE a.type = 50001 GROUP BY a.name, a.callchainId"
)
_MEMORY = (
    "SELECT deviceId, max(totalAllocated), max(totalReserved), max(totalReserved - totalActive) FROM MEMORY_RECORD "
    f"WHERE {_TEXT.format('component')} = 'PTA' GROUP BY deviceId"
)


def read_database(file: Path, profile: Profile) -> None:
    """Add what a database has; what it lacks is left out. One that is broken is told in one line."""
    from migrator.profile.npu import note_kernel

    try:
        with closing(
            sqlite3.connect(f"file:{file.resolve().as_posix()}?mode=ro&immutable=1", uri=True)
        ) as base:
            tables = {name for (name,) in base.execute("SELECT name FROM sqlite_master")}

            def asked(query: str, *needed: str) -> Iterator[tuple[Any, ...]]:
                return base.execute(query) if tables.issuperset(needed) else iter(())  # type: ignore[return-value]

            computing, communication, steps = Spans(), Spans(), Spans()
            for name, core, start, end, types in asked(_KERNELS, "COMPUTE_TASK_INFO", "TASK"):
                note_kernel(profile, str(name), str(core or ""), 1, (end - start) / 1000, str(types or ""))
                computing.add(start / 1000, end / 1000)
            for start, end in asked("SELECT startNs, endNs FROM COMMUNICATION_OP", "COMMUNICATION_OP"):
                communication.add(start / 1000, end / 1000)
            marked = list(asked("SELECT startNs, endNs FROM STEP_TIME ORDER BY startNs", "STEP_TIME"))
            for start, end in marked:
                steps.add(start / 1000, end / 1000)
            for name, calls, time, stack in asked(_CALLS, "PYTORCH_API", "PYTORCH_CALLCHAINS"):
                one = profile.operators.setdefault(str(name), Operator(str(name)))
                one.add(calls, 0.0, time / 1000, place_of(str(stack or "")))
            for device, allocated, reserved, unused in asked(_MEMORY, "MEMORY_RECORD"):
                profile.memory.append(Memory(f"NPU:{device}", allocated, reserved, unused))
            _split(profile, len(marked), steps, computing, communication)
            table = list(asked(_STEPS, "StepTraceTime"))
    except (sqlite3.Error, UnicodeError) as error:
        return profile.tell(_("{name} cannot be read: {what}", name=shown(file.name), what=str(error)))
    if table:  # the same as step_trace_time.csv
        means = [sum(each) / len(table) for each in zip(*table)]
        bubble = min(means[1], means[2])
        profile.parts = {
            "compute": means[0],
            "communication": means[1] - bubble,
            "bubble": bubble,
            "host": means[3],
        }
        profile.steps, profile.step, profile.communication = (
            len(table),
            means[0] + means[1] + means[3],
            means[4],
        )


def _split(profile: Profile, count: int, steps: Spans, computing: Spans, communication: Spans) -> None:
    inside, busy, talked = steps.merged(), computing.merged(), communication.merged()
    if not count or profile.step:
        return
    profile.steps, profile.step = count, length(inside) / count
    compute = length(common(busy, inside)) / count
    alone = length(without(list(common(talked, inside)), busy)) / count
    profile.parts = {
        "compute": compute,
        "communication": alone,
        "host": max(0.0, profile.step - compute - alone),
    }
    profile.communication = length(common(talked, inside)) / count
