"""What this process did, written to the report folder when it ends."""

from __future__ import annotations

import atexit
import json
import os
import sys
from contextlib import suppress
from multiprocessing import util

from npumigrate_emulator import compute

_native: frozenset[str] = frozenset()


def begin(native: frozenset[str]) -> None:
    """Write at the end, if a report is wanted. ``native``: what torch_npu has a kernel of its own for."""
    global _native
    if not os.environ.get("NPUMIGRATE_EMULATOR_REPORT"):
        return
    _native = native
    process = os.getpid()
    atexit.register(_write, process)
    # multiprocessing's children end without atexit.
    util.Finalize(None, _write, args=(process,), exitpriority=0)
    os.register_at_fork(after_in_child=lambda: atexit.unregister(_write))


def _write(process: int) -> None:
    if process != os.getpid():
        return
    operators = compute.operators()
    names = sorted({name for counts in operators.values() for name in counts})
    result = {
        "process": process,
        "rank": os.environ.get("RANK"),
        "command": sys.argv,
        "operators": {device: dict(sorted(counts.items())) for device, counts in sorted(operators.items())},
        # On an NPU, torch_npu computes these on the CPU, and copies to and fro.
        "without_npu_kernel": [name for name in names if name.startswith("aten::") and name not in _native],
        "collectives": compute.collectives(),
    }
    folder = os.environ["NPUMIGRATE_EMULATOR_REPORT"]
    try:
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, f"process-{process}.json")
        with open(f"{path}.part", "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
        os.replace(f"{path}.part", path)
    except OSError as error:
        _complain(f"npumigrate emulate: no report from process {process}: {error}")


def _complain(line: str) -> None:
    with suppress(OSError, ValueError, AttributeError):  # a process whose streams are closed
        print(line, file=sys.stderr)
