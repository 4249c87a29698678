"""What this process did, written to the report folder when it ends."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from multiprocessing import util
from typing import NoReturn

from npumigrate_emulator import compute, insight, shapes

_native: frozenset[str] | None = None


def begin() -> None:
    """Note from now on, and write at the end, if a report is wanted (torch must be imported)."""
    if not os.environ.get("NPUMIGRATE_EMULATOR_REPORT"):
        return
    compute.note_cpu()
    shapes.begin()
    # Called at the end of this process, but not of those forked from it. Not atexit: the children that
    # multiprocessing forks end without that.
    write = util.Finalize(None, _write, exitpriority=0)
    process, leave = os.getpid(), os._exit

    def leave_with_report(status: int) -> NoReturn:
        if os.getpid() == process:
            write()  # once: it is nothing where it has been called
        leave(status)

    os._exit = leave_with_report


def torch_npu_is_here(native: frozenset[str]) -> None:
    """Note that torch_npu was imported. ``native``: what it has a kernel of its own for."""
    global _native
    _native = native


def _write() -> None:
    process = os.getpid()
    dynamic = shapes.end()
    work = compute.work()
    operators = {device: done.pop("operators") for device, done in work.items()}
    operators.pop("cpu", None)
    names = sorted({name for counts in operators.values() for name in counts})
    result = {
        "process": process,
        "rank": _rank(),
        "command": sys.argv,
        "torch_npu": _native is not None,
        "operators": {device: dict(sorted(counts.items())) for device, counts in sorted(operators.items())},
        # On an NPU, torch_npu computes these on the CPU, and copies to and fro.
        "without_npu_kernel": [
            name for name in names if name.startswith("aten::") and name not in (_native or ())
        ],
        "collectives": {} if _native is None else compute.collectives(),
        "work": work,
        "dynamic_shapes": dynamic,
        "cuda_on_cpu": getattr(sys.modules.get("npumigrate_emulator.cuda_on_cpu"), "calls", None),
        "transfer_to_npu": "torch_npu.contrib.transfer_to_npu" in sys.modules,
    }
    if insight.wanted() and _native is not None:
        result["insight"] = insight.end()
    folder = os.environ["NPUMIGRATE_EMULATOR_REPORT"]
    try:
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, f"process-{process}.json")
        with open(f"{path}.part", "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
        os.replace(f"{path}.part", path)
    except OSError as error:
        _complain(f"npumigrate emulate: no report from process {process}: {error}")


def _rank() -> str | None:
    """The rank, as a launcher gives it, or as this process gave it to HCCL."""
    rank = os.environ.get("RANK")
    if rank is None and _native is not None:
        found = compute.rank()
        return None if found is None else str(found)
    return rank


def _complain(line: str) -> None:
    with suppress(OSError, ValueError, AttributeError):  # a process whose streams are closed
        print(line, file=sys.stderr)
