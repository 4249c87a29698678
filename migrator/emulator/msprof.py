"""What CANN's ``msprof`` makes of a profile, for emulated NPUs: torch_npu's profiler starts it.

It reads what the emulated NPUs noted (``host/emulated_tasks.txt``) and writes the tables and the trace, or
the database, that torch_npu goes on with. All times are the CPU's, so each core is called
``EMULATED_ON_CPU``. It runs by itself, without npumigrate.
"""

from __future__ import annotations

import csv
import json
import sqlite3
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

CORE = "EMULATED_ON_CPU"
# torch_npu looks ten times a second for the files, and gives up where this has ended before it has seen them.
_SEEN = 1.0
NOTED = "host/emulated_tasks.txt"
_HELP = "msprof of npumigrate's emulated NPUs: --export=on|--analyze=on [--type=db] --output=PROF_FOLDER"
_SUMMARY = (
    *("Device_id", "Model ID", "Task ID", "Stream ID", "Op Name", "OP Type", "OP State", "Task Type"),
    *("Task Start Time(us)", "Task Duration(us)", "Task Wait Time(us)", "Block Num", "Mix Block Num"),
    *("HF32 Eligible", "Input Shapes", "Input Data Types", "Input Formats"),
)
_STATISTIC = (
    *("Device_id", "OP Type", "Core Type", "Count", "Total Time(us)", "Min Time(us)", "Avg Time(us)"),
    *("Max Time(us)", "Ratio(%)"),
)
_HARDWARE, _COMMUNICATION, _OVERLAP, _CANN = range(100, 104)  # processes of the trace
_TABLES = {
    "STRING_IDS": "id INTEGER PRIMARY KEY, value TEXT",
    "TASK": "startNs, endNs, deviceId, connectionId, globalTaskId, globalPid, taskType, contextId, streamId,"
    " taskId, modelId",
    "COMPUTE_TASK_INFO": "name, globalTaskId, blockNum, mixBlockNum, taskType, opType, inputFormats,"
    " inputDataTypes, inputShapes",
    "COMMUNICATION_OP": "opName, startNs, endNs, connectionId, opId",
    "CANN_API": "startNs, endNs, type, globalTid, connectionId, name",
}


class Task(NamedTuple):
    """What an emulated NPU did, in nanoseconds."""

    name: str
    shapes: str
    types: str
    device: int
    thread: int
    start: int
    end: int

    @property
    def communication(self) -> bool:
        """Whether it is a part of a collective."""
        return self.name.startswith("hcom_")

    @property
    def kind(self) -> str:
        """The type of operator: ``addmm`` of ``aten::addmm``."""
        return self.name.partition("@")[0].rpartition("::")[2]


def read(profile: Path) -> list[Task]:
    """The tasks in the order in which they began; a line that was cut off is left out."""
    lines = (profile / NOTED).read_text(encoding="utf-8", errors="replace").splitlines()
    fields = [line.split("\t") for line in lines]
    whole = (each for each in fields if len(each) == 7 and each[6])
    found = [Task(*each[:3], *map(int, each[3:])) for each in whole]  # type: ignore[arg-type]
    return sorted(found, key=lambda task: task.start)


def _types(task: Task) -> str:
    """The dtypes of a task's inputs, as CANN's tables have them: FLOAT, FLOAT16, DT_BF16."""
    return task.types.replace("DT_", "").replace("BFLOAT16", "DT_BF16")


def us(time: int) -> str:
    """Nanoseconds as CANN writes microseconds."""
    return f"{time // 1000}.{time % 1000:03d}"


def write(file: Path, head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a table."""
    with file.open("w", newline="", encoding="utf-8") as out:
        table = csv.writer(out)
        table.writerow(head)
        table.writerows(rows)


def summary(tasks: Iterable[Task]) -> Iterable[Sequence[object]]:
    """Rows of op_summary: a row for each operator that ran."""
    done = 0
    for number, task in enumerate(tasks):
        wait, done = max(0, task.start - done) if done else 0, task.end
        yield (
            *(task.device, 0, number, 1, task.name, task.kind, "dynamic", CORE, f"{us(task.start)}\t"),
            *(us(task.end - task.start), us(wait), 1, 0, "NO", task.shapes, _types(task)),
            ";".join("ND" for _ in task.types.split(";")),
        )


def statistic(tasks: Iterable[Task]) -> Iterable[Sequence[object]]:
    """Rows of op_statistic: a row for each type of operator."""
    times: dict[tuple[int, str], list[float]] = {}
    for task in tasks:
        times.setdefault((task.device, task.kind), []).append((task.end - task.start) / 1000)
    whole = sum(map(sum, times.values())) or 1.0
    for (device, kind), each in sorted(times.items(), key=lambda item: -sum(item[1])):
        total = sum(each)
        figures = (total, min(each), total / len(each), max(each), 100 * total / whole)
        yield (device, kind, CORE, len(each), *(f"{figure:.3f}" for figure in figures))


def trace(tasks: Sequence[Task]) -> list[dict[str, object]]:
    """The events of the NPU: tasks, what the host did to start them, and what of the time they fill."""
    device = tasks[0].device if tasks else 0
    names = {_HARDWARE: "Ascend Hardware", _COMMUNICATION: "Communication", _OVERLAP: "Overlap Analysis"}
    found: list[dict[str, object]] = []
    for pid, name in {**names, _CANN: "CANN"}.items():
        said = {"name": name if pid != _HARDWARE else f"{name} (emulated: the times are the CPU's)"}
        label = {"labels": "CPU" if pid == _CANN else f"NPU {device}"}
        found.append({"name": "process_name", "pid": pid, "tid": 0, "ph": "M", "args": said})
        found.append({"name": "process_labels", "pid": pid, "tid": 0, "ph": "M", "args": label})
    done = 0
    for number, task in enumerate(tasks):
        pid = _COMMUNICATION if task.communication else _HARDWARE
        start, length = us(task.start), (task.end - task.start) / 1000
        event: dict[str, object] = {"ts": start, "dur": length, "ph": "X"}
        args = {"Model Id": 0, "Task Type": CORE, "Stream Id": 1, "Task Id": number}
        found.append({**event, "name": task.name, "pid": pid, "tid": 1, "args": args})
        # Its launch, when it has ended: torch_npu gives what is launched before a call inside to that call.
        launch = {"ts": us(task.end), "pid": _CANN, "tid": task.thread}
        found.append({**launch, "name": "Node@launch", "dur": 0.001, "ph": "X", "args": {}})
        flow = {"cat": "HostToDevice", "name": "HostToDevice", "id": number}
        found.append({**flow, **launch, "ph": "s"})
        found.append({**flow, "ph": "f", "bp": "e", "pid": pid, "tid": 1, "ts": start})
        if done and task.start > done:
            free = {"ts": us(done), "dur": (task.start - done) / 1000, "ph": "X", "name": "Free"}
            found.append({**free, "pid": _OVERLAP, "tid": 3, "args": {}})
        done = max(done, task.end)
        kinds = ("Communication", "Communication(Not Overlapped)") if task.communication else ("Computing",)
        found += [
            {**event, "name": kind, "pid": _OVERLAP, "tid": len(kind) % 3, "args": {}} for kind in kinds
        ]
    return found


def database(tasks: Sequence[Task], file: Path) -> None:
    """Write the tables of CANN's database that torch_npu reads."""
    known: dict[str, int] = {}

    def of(text: str) -> int:
        return known.setdefault(text, len(known))

    rows: dict[str, list[Sequence[object]]] = {name: [] for name in _TABLES}
    for number, task in enumerate(tasks):
        times = (task.start, task.end)
        rows["TASK"].append((*times, task.device, number, number, 0, of(CORE), 0, 1, number, 0))
        rows["CANN_API"].append((*times, 10000, task.thread, number, of("launch")))
        if task.communication:
            rows["COMMUNICATION_OP"].append((of(task.name), *times, number, number))
            continue
        row = (number, 1, 0, of(CORE), of(task.kind), of("ND"), of(_types(task)), of(task.shapes))
        rows["COMPUTE_TASK_INFO"].append((of(task.name), *row))
    rows["STRING_IDS"] = [(number, text) for text, number in known.items()]
    file.unlink(missing_ok=True)
    base = sqlite3.connect(file)
    for name, columns in _TABLES.items():
        base.execute(f"CREATE TABLE {name} ({columns})")
        marks = ", ".join("?" * len(columns.split(",")))
        base.executemany(f"INSERT INTO {name} VALUES ({marks})", rows[name])  # nosec B608 # our own names, no input
    base.commit()
    base.close()


def main(arguments: Sequence[str]) -> int:
    """Do what torch_npu asks for; gives the exit code."""
    given = dict(each.lstrip("-").partition("=")[::2] for each in arguments)
    if "output" not in given:
        print(_HELP)
        return 0 if "help" in given or "h" in given else 1
    profile = Path(given["output"])
    if given.get("export") != "on":
        return 0  # collectives are in the trace; what links did is not emulated
    tasks, stamp = read(profile), profile.name.split("_")[2]
    if given.get("type") == "db":
        database(tasks, profile / f"msprof_{stamp}.db")
        time.sleep(_SEEN)
        return 0
    output = profile / "mindstudio_profiler_output"
    output.mkdir(exist_ok=True)
    computed = [task for task in tasks if not task.communication]
    (output / f"msprof_{stamp}.json").write_text(json.dumps(trace(tasks)), encoding="utf-8")
    write(output / f"op_statistic_{stamp}.csv", _STATISTIC, statistic(computed))
    write(output / f"op_summary_{stamp}.csv", _SUMMARY, summary(computed))
    time.sleep(_SEEN)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
