"""What each place of the project has the NPUs do: the recorder behind ``--insight``.

The kernels count by place, operator and kind of arguments (``compute/insight.cpp``), and ask here only which
place it is that runs. Collectives are written down as they begin, so that a rank that is ended leaves its own
behind.
``docs/insight.md`` has the format.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import sysconfig
import threading
from functools import wraps
from types import CodeType, FrameType
from typing import Any, Optional

from npumigrate_emulator import compute

SCHEMA = 1
_MOST_COLLECTIVES = 200_000  # of one process
_LONGEST_PLACE = 159  # bytes, as cann/hccl_group.h has it
_MOST_FRAMES = 12  # of a call stack

_OWN = os.path.dirname(os.path.abspath(__file__)) + os.sep
_BOOTSTRAP = os.path.dirname(_OWN.rstrip(os.sep)) + os.sep
_STANDARD = tuple(
    sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib") if sysconfig.get_path(name)
)
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_COMPOSITE = ("CompositeImplicitAutograd", "CompositeExplicitAutograd")
# What a frame of a file is; the innermost one of the project is the place, or else one beside it.
_FOREIGN, _PROJECT, _BESIDE, _REFERENCE, _PRINTING = range(5)

_kinds: dict[int, tuple[CodeType, int]] = {}  # by the code's id; the code is kept alive
_numbers: dict[tuple[int, int, int], int] = {}  # code, instruction, by way of what: to the place
_places: list[dict[str, Any]] = []
_by_line: dict[tuple[str, int, str, int], int] = {}
_stacks: dict[int, list[str]] = {}  # by record
_steps = 0
_first_optimizer: Optional[int] = None
_root = ""
_depth = 0  # of modules that run
_collectives: Optional[int] = None  # the file that they are written to
_writing = threading.Lock()  # DataParallel's collectives come from a thread for each NPU
_calls: dict[tuple[Any, ...], int] = {}
_written = 0


def wanted() -> bool:
    """Whether this run is to be recorded."""
    return "NPUMIGRATE_EMULATOR_INSIGHT" in os.environ


def begin() -> None:
    """Record from now on (torch_npu must be imported)."""
    from torch.optim.optimizer import (
        register_optimizer_step_post_hook,
        register_optimizer_step_pre_hook,
    )

    global _root
    root = os.environ["NPUMIGRATE_EMULATOR_INSIGHT"]
    _root = os.path.join(os.path.realpath(root), "") if root else ""
    register_optimizer_step_pre_hook(_steps_begin)
    register_optimizer_step_post_hook(_steps_end)
    _count_passes()
    compute.library().emulator_ask_places(_ASK)
    compute.library().emulator_insight_begin(_TELL)
    compute.cann().emulator_on_collective(_ON_COLLECTIVE)


def forget() -> None:
    """Begin anew in a forked process; the places keep their numbers."""
    global _collectives, _steps, _written
    _stacks.clear()
    _calls.clear()
    _collectives, _steps, _written = None, 0, 0


def end() -> dict[str, Any]:
    """Record no more, and return what there is."""
    # Operators may run until the very end, when there is no Python left to ask.
    compute.library().emulator_ask_places(None)
    compute.library().emulator_insight_begin(None)
    compute.cann().emulator_on_collective(None)
    recorded = compute.read(compute.library().emulator_insight)
    return {
        "schema": SCHEMA,
        "steps": _steps,
        "places": _places,
        "stacks": {str(record): stack for record, stack in _stacks.items()},
        "composite": sorted(filter(_is_composite, {record["operator"] for record in recorded["records"]})),
        **recorded,
    }


def _is_composite(operator: str) -> bool:
    """Whether torch makes an operator of others, so that it needs no kernel of its own."""
    has = sys.modules["torch"]._C._dispatch_has_kernel_for_dispatch_key
    return any(has(operator, key) for key in _COMPOSITE)


def _kind_of(code: CodeType) -> int:
    file = code.co_filename
    if file.startswith(_OWN):
        kind = _REFERENCE
    elif file.endswith(f"{os.sep}torch{os.sep}_tensor_str.py"):
        kind = _PRINTING
    elif file.startswith(("<", _BOOTSTRAP)) or any(part in file for part in _INSTALLED):
        kind = _FOREIGN
    elif file.startswith(_STANDARD) and not (_root and file.startswith(_root)):
        kind = _FOREIGN
    else:
        real = os.path.realpath(file)
        kind = _PROJECT if real.startswith(_root) else _BESIDE
    _kinds[id(code)] = (code, kind)
    return kind


def _find() -> int:
    """The number of the place that runs: the innermost frame of the project; -1 where there is none."""
    frame: Optional[FrameType] = sys._getframe(1)
    beside: Optional[FrameType] = None
    through = _FOREIGN
    while frame is not None:  # short, as it runs for each operator
        code = frame.f_code
        known = _kinds.get(id(code))
        kind = _kind_of(code) if known is None else known[1]
        if kind == _PROJECT:
            return _number(frame, through)
        if kind == _BESIDE:
            beside = beside or frame
        elif kind != _FOREIGN:
            through = kind
        frame = frame.f_back
    return -1 if beside is None else _number(beside, through)


def _number(frame: FrameType, through: int) -> int:
    key = (id(frame.f_code), frame.f_lasti, through)
    number = _numbers.get(key)
    if number is None:
        number = _numbers[key] = _new_place(frame.f_code, frame.f_lineno, through)
    return number


def _new_place(code: CodeType, line: int, through: int) -> int:
    """Several instructions of one line are one place."""
    name = getattr(code, "co_qualname", code.co_name)  # the latter before Python 3.11
    key = (code.co_filename, line, name, through)
    if key not in _by_line:
        _by_line[key] = len(_places)
        way = {_REFERENCE: "reference", _PRINTING: "print"}.get(through, "")
        file = os.path.realpath(code.co_filename)
        shown = os.path.relpath(file, _root or os.getcwd())
        _places.append({"file": shown, "line": line, "function": name, "through": way})
    return _by_line[key]


def _steps_begin(optimizer: Any, *_: object) -> None:
    compute.library().emulator_insight_optimizing(1)


def _steps_end(optimizer: Any, *_: object) -> None:
    """One step is one of the first optimizer: others, as in a GAN, have their turns between two of them."""
    global _steps, _first_optimizer
    compute.library().emulator_insight_optimizing(0)
    if _first_optimizer is None:
        _first_optimizer = id(optimizer)
    if id(optimizer) == _first_optimizer:
        _steps += 1
        compute.library().emulator_insight_stepped()


def _count_passes() -> None:
    """Until an optimizer is made, a step is a pass through an outermost module."""
    from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
    from torch.optim import Optimizer

    def enter(*_: object) -> None:
        global _depth
        _depth += 1

    def leave(*_: object) -> None:
        global _depth, _steps
        _depth -= 1
        if _depth == 0:
            _steps += 1
            compute.library().emulator_insight_stepped()

    hooks = [register_module_forward_pre_hook(enter), register_module_forward_hook(leave, always_call=True)]
    changed: Any = Optimizer
    make = changed.__init__

    @wraps(make)
    def make_and_count_no_more(self: Any, *args: Any, **options: Any) -> None:
        global _steps
        if hooks:
            _steps = 0
            compute.library().emulator_insight_restart()
        while hooks:
            hooks.pop().remove()
        make(self, *args, **options)

    changed.__init__ = make_and_count_no_more


def _tell(record: int) -> None:
    stack: list[str] = []
    frame: Optional[FrameType] = sys._getframe(1)
    while frame is not None and len(stack) < _MOST_FRAMES:
        code = frame.f_code
        if (_kinds.get(id(code)) or (None, _kind_of(code)))[1] in (_PROJECT, _BESIDE):
            file = os.path.relpath(os.path.realpath(code.co_filename), _root or os.getcwd())
            stack.append(f"file {file}, line {frame.f_lineno} in {code.co_name}")
        frame = frame.f_back
    _stacks[record] = stack[::-1]


def _on_collective(kind: bytes, group: bytes, size: int, rank: int, amount: int) -> None:
    """Write it down, and tell the emulated HCCL where it is, for what it says of ranks that wait."""
    global _written
    number = _find()
    place = _places[number] if number >= 0 else None
    where = f"{place['file']}:{place['line']}" if place else ""
    # Its end, which is what there is room for, without half a character: torch reads it as UTF-8.
    shown = where.encode(errors="backslashreplace")[-_LONGEST_PLACE:].decode(errors="ignore")
    compute.cann().emulator_collective_place(shown.encode())
    _written += 1
    if _written > _MOST_COLLECTIVES:
        return
    key = (kind, group, amount, number)
    with _writing:
        lines = ""
        if key not in _calls:
            _calls[key] = len(_calls)
            call = {
                "kind": kind.decode(),
                "group": group.decode(),
                "size": size,
                "rank": rank,
                "bytes": amount,
            }
            where_from = {key: place[key] for key in ("file", "line", "function")} if place else None
            lines = json.dumps({**call, "step": _steps, "place": where_from}) + "\n"
        _write(f"{lines}{_calls[key]} {_steps}\n")


def _write(text: str) -> None:
    global _collectives
    if _collectives is None:
        folder = os.environ["NPUMIGRATE_EMULATOR_REPORT"]
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, f"collectives-{os.getpid()}.txt")
        _collectives = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    os.write(_collectives, text.encode())


_ASK = ctypes.CFUNCTYPE(ctypes.c_int)(_find)
_TELL = ctypes.CFUNCTYPE(None, ctypes.c_size_t)(_tell)
_ON_COLLECTIVE = ctypes.CFUNCTYPE(
    None, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_int, ctypes.c_uint64
)(_on_collective)
