"""What this process did, written to the report folder when it ends."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from contextlib import suppress
from multiprocessing import popen_fork, util
from typing import Any, NoReturn

from npumigrate_emulator import compute, insight, shapes

_SIGNAL = signal.SIGRTMAX - 4  # a signal that programs have no use for: write now, what follows ends you
_ANSWER = 2.0  # seconds for that
_native: frozenset[str] | None = None
_due = 0  # the process that has not written yet
_forked = False
_folder = os.sep  # where the process began: it may end in another one, or in one that is gone


def begin() -> None:
    """Note from now on, and write at the end, if a report is wanted (torch must be imported).

    Not by atexit: the children that multiprocessing forks end by ``os._exit``, after its finalizers. Those
    that are forked later begin anew, and those that are terminated are asked before.
    """
    if not os.environ.get("NPUMIGRATE_EMULATOR_REPORT"):
        return
    compute.note_cpu()
    shapes.begin()
    _expect()
    os.register_at_fork(after_in_child=_begin_anew)
    with suppress(ValueError):  # torch is imported by another thread than the main one
        signal.signal(_SIGNAL, lambda *_: _write_once())
    popen: Any = popen_fork.Popen  # of the other ways to start a process, too
    leave, end = os._exit, popen._send_signal

    def leave_with_report(status: int) -> NoReturn:
        _write_once()
        leave(status)

    def end_with_report(child: Any, number: int) -> None:
        if number in (signal.SIGTERM, signal.SIGKILL) and child.returncode is None:
            _ask(child.pid)
        end(child, number)

    os._exit, popen._send_signal = leave_with_report, end_with_report


def _expect() -> None:
    global _due, _folder
    _due = os.getpid()
    with suppress(OSError):  # it may be gone, too
        _folder = os.getcwd()
    util.Finalize(None, _write_once, exitpriority=0)


def _begin_anew() -> None:
    """What was noted so far is the parent's; the libraries themselves forget it."""
    global _forked
    _forked = True
    for module in (shapes, insight, sys.modules.get("npumigrate_emulator.cuda_on_cpu")):
        if module is not None:
            module.forget()
    _expect()


def _ask(pid: int) -> None:
    """Let a process that can write its report do so; it may be killed then."""
    with suppress(OSError, ValueError, StopIteration):
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as status:
            caught = next(line for line in status if line.startswith("SigCgt:")).split()[1]
        if int(caught, 16) >> (_SIGNAL - 1) & 1:
            os.kill(pid, _SIGNAL)
            end = time.monotonic() + _ANSWER
            while time.monotonic() < end and not os.path.exists(_path(pid)):
                time.sleep(0.01)


def _path(process: int) -> str:
    return os.path.join(os.environ["NPUMIGRATE_EMULATOR_REPORT"], f"process-{process}.json")


def _write_once() -> None:
    global _due
    if _due == os.getpid():
        _due = 0
        try:
            _write()
        except Exception as error:  # the program ends as it would without a report
            _complain(f"npumigrate emulate: no report from process {os.getpid()}: {error}")


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
    # What a DataLoader's worker computes on the CPU is no work of a model.
    data: Any = sys.modules.get("torch.utils.data")
    prepares = data is not None and data.get_worker_info() is not None
    if (prepares or (_forked and not work)) and not operators:
        return
    names = sorted({name for counts in operators.values() for name in counts})
    result = {
        "process": process,
        "rank": _rank(),
        "command": sys.argv,
        "files": _files(),
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
    path = _path(process)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(f"{path}.part", "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
    os.replace(f"{path}.part", path)


def _rank() -> str | None:
    """The rank, as a launcher gives it, or as this process gave it to HCCL."""
    rank = os.environ.get("RANK", "")
    if rank.isdecimal():  # what else a program keeps there is no rank
        return rank
    found = compute.rank() if _native is not None else None
    return None if found is None else str(found)


def _files() -> list[str]:
    """The Python files that were loaded, without installed packages and Python's own."""
    # Not getattr: a module that a library imports late is imported by it, or raises.
    named = [getattr(module, "__dict__", {}).get("__file__") for module in list(sys.modules.values())]
    files = (os.path.join(_folder, file) for file in (*named, *sys.argv[:1]) if isinstance(file, str))
    own = set(map(os.path.realpath, files))
    foreign = (f"{os.sep}site-packages{os.sep}", os.path.dirname(os.__file__) + os.sep)
    return sorted(file for file in own if file.endswith(".py") and not any(each in file for each in foreign))


def _complain(line: str) -> None:
    with suppress(OSError, ValueError, AttributeError):  # a process whose streams are closed
        print(line, file=sys.stderr)
