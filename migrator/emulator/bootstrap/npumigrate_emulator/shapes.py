"""Operators that met new shapes while the program trained: an NPU may prepare each of these anew."""

from __future__ import annotations

import ctypes
import os
import sys
from types import FrameType
from typing import Any

from npumigrate_emulator import compute

_OWN = f"{os.sep}npumigrate_emulator{os.sep}"
# For each operator, its shapes as they came: after how many steps of optimizers, and from which line.
_seen: dict[str, list[tuple[int, str, str]]] = {}
_steps = 0
_optimizers: set[int] = set()


def begin() -> None:
    """Note from now on (torch must be imported)."""
    from torch.optim.optimizer import register_optimizer_step_post_hook

    register_optimizer_step_post_hook(_stepped)
    compute.library().emulator_tell_shapes(_TELL)


def forget() -> None:
    """Begin anew in a forked process."""
    global _steps
    _seen.clear()
    _optimizers.clear()
    _steps = 0


def end() -> dict[str, Any]:
    """Note no more, and return what was new after the first step.

    ``steps`` is how many steps there were, one for each turn of all optimizers. What runs after the last one,
    such as an evaluation, does not count.
    """
    compute.library().emulator_tell_shapes(None)
    turn = max(1, len(_optimizers))
    found: list[dict[str, Any]] = []
    for name, shapes in _seen.items():
        late = [(step // turn, text, place) for step, text, place in shapes[1:] if turn <= step < _steps]
        if late:
            _, then, place = late[0]
            steps = len({step for step, _, _ in late})
            entry = {"operator": name, "shapes": len(shapes), "steps": steps, "place": place}
            found.append({**entry, "first": shapes[0][1], "then": then})
    found.sort(key=lambda entry: (-entry["steps"], -entry["shapes"], entry["operator"]))
    return {"steps": _steps // turn, "operators": found}


def _stepped(optimizer: Any, *_: object) -> None:
    global _steps
    _steps += 1
    _optimizers.add(id(optimizer))


def _tell(name: bytes, shapes: bytes) -> None:
    place = _place() if _steps else ""
    _seen.setdefault(name.decode(), []).append((_steps, shapes.decode(), place))


_TELL = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_char_p)(_tell)


def is_installed(file: str) -> bool:
    """Whether a file is of an installed package or of the emulator, or no file at all."""
    return f"{os.sep}site-packages{os.sep}" in file or _OWN in file or file.startswith("<")


def _place() -> str:
    """The innermost line outside of installed packages, as ``file:line``; in a backward pass its call."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not is_installed(file):
            return f"{os.path.relpath(file)}:{frame.f_lineno}"
        frame = frame.f_back
    return ""
