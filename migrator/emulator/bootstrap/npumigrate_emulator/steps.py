"""Ends a program in order after so many steps of its optimizers: ``verify --steps``.

It ends where its next step would begin, with ``SystemExit``: what follows a step (schedulers, prints,
checkpoints) is done, and so is what the program does on its way out.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import threading
import weakref
from collections.abc import Callable
from functools import wraps
from glob import glob
from pathlib import Path
from typing import Any

_AGAIN = 20  # a program that catches everything is asked so often
_LATE = 10  # times the limit: an optimizer that has not stepped by then does not belong to each step
_limit = int(os.environ.get("NPUMIGRATE_EMULATOR_STEPS", "0"))
_optimizers: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()  # and its steps
_made = False  # an optimizer was
_passes = 0  # of the outermost modules
_depth = 0
_asked = 0
_leaving = False
_trains: dict[str, bool] = {}  # by the files of modules


class StepsDone(SystemExit):
    """The program has made as many steps as were asked for."""


def begin() -> None:
    """Count from now on, if a limit is given (torch must be imported)."""
    if not _limit:
        return
    import torch
    from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

    register_optimizer_step_pre_hook(lambda *_: _at_beginning())
    register_optimizer_step_post_hook(lambda optimizer, *_: _stepped(optimizer))
    optimizer: Any = torch.optim.Optimizer
    optimizer.__init__ = _noting_that_one_is_made(optimizer.__init__)
    module: Any = torch.nn.Module
    module.__call__ = _counting_passes(module.__call__)
    iterator: Any = torch.utils.data.dataloader._BaseDataLoaderIter
    iterator.__next__ = _beginning_with(iterator.__next__)
    count_skipped(torch.amp.GradScaler)


def count_skipped(scaler: Any) -> None:
    """Count the steps, too, that a gradient scaler leaves out because of infinite gradients."""
    if not _limit:
        return
    step = scaler.step

    @wraps(step)
    def counted(self: Any, optimizer: Any, *arguments: Any, **options: Any) -> Any:
        before = _optimizers.get(optimizer, 0)
        result = step(self, optimizer, *arguments, **options)
        if _optimizers.get(optimizer, 0) == before:
            _stepped(optimizer)
        return result

    scaler.step = counted


def others_are_done() -> bool:
    """Whether a process of this run has made its steps."""
    return bool(_limit) and bool(glob(os.path.join(_folder(), "steps-*.json")))


def _folder() -> str:
    return os.environ.get("NPUMIGRATE_EMULATOR_REPORT", ".")


def _noting_that_one_is_made(make: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(make)
    def made(self: Any, *arguments: Any, **options: Any) -> None:
        global _made
        _made = True
        make(self, *arguments, **options)
        _optimizers.setdefault(self, 0)

    return made


def _counting_passes(call: Callable[..., Any]) -> Callable[..., Any]:
    main = threading.main_thread().ident

    @wraps(call)
    def counted(self: Any, *arguments: Any, **options: Any) -> Any:
        global _depth, _passes
        if threading.get_ident() != main:
            return call(self, *arguments, **options)
        if not _depth:
            _at_beginning()
        _depth += 1
        try:
            return call(self, *arguments, **options)
        finally:
            _depth -= 1
            _passes += not _depth

    return counted


def _beginning_with(following: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(following)
    def begun(self: Any) -> Any:
        _at_beginning()
        return following(self)

    return begun


def _stepped(optimizer: Any) -> None:
    _optimizers[optimizer] = _optimizers.get(optimizer, 0) + 1
    if threading.current_thread() is not threading.main_thread() and _is_done():
        _leave_at_once()  # what is raised here would end this thread only


def _is_done() -> bool:
    """Whether each optimizer has made its steps; one that never steps is waited for a turn longer."""
    if not _made:
        return _passes >= _limit and not _trains_somewhere()
    counts = list(_optimizers.values())
    most = max(counts, default=0)
    if most < _limit:
        return False
    return most >= _LATE * _limit or all(
        count >= _limit or (count == 0 and most > _limit) for count in counts
    )


def _trains_somewhere() -> bool:
    """Whether the program's own files speak of a backward pass: its optimizer is still to come."""
    folder = os.getcwd() + os.sep
    for module in list(sys.modules.values()):
        file = getattr(module, "__dict__", {}).get("__file__")  # as in report
        if isinstance(file, str) and file not in _trains:
            own = os.path.abspath(file).startswith(folder) and f"{os.sep}site-packages{os.sep}" not in file
            try:
                _trains[file] = own and ".backward(" in Path(file).read_text("utf-8", "replace")
            except OSError:
                _trains[file] = False
    return any(_trains.values())


def _at_beginning() -> None:
    global _asked
    if _leaving or threading.current_thread() is not threading.main_thread() or not _is_done():
        return
    _asked += 1
    if _asked == 1:
        _note()
        atexit.register(_end_groups)  # called before all that the program has registered
    if _asked > _AGAIN:
        _leave_at_once()
    raise StepsDone(0)


def _leave_at_once() -> None:
    _note()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(0)


def _note() -> None:
    result = {
        "process": os.getpid(),
        "parent": os.getppid(),
        "rank": os.environ.get("RANK"),
        "steps": max(_optimizers.values(), default=0),
        "passes": _passes,
    }
    path = os.path.join(_folder(), f"steps-{os.getpid()}.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(result, file)


def _end_groups() -> None:
    """All ranks have come to the same place: no collective is under way."""
    global _leaving
    _leaving = True
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        distributed.destroy_process_group()
