"""What ended this process: the exception, the lines of the program, and what its values were there."""

from __future__ import annotations

import ast
import atexit
import builtins
import json
import linecache
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import wraps
from inspect import signature
from itertools import islice
from types import CodeType, FrameType, ModuleType, TracebackType
from typing import Any, NamedTuple

from npumigrate_emulator import steps

_LONGEST = 4000  # characters of a message
_FRAMES = 60
_PEER_GONE = (
    "has gone; its peers end",
    "Connection closed by peer",
    "Connection reset by peer",
    "Broken pipe",
)
_noted: set[int] = set()
_lost: set[tuple[str, int]] = set()


class Traced(NamedTuple):
    """A call, and where it was."""

    frame: FrameType
    instruction: int
    line: int


def install() -> None:
    """Note what nobody catches, and what is being handled where the program leaves with an error."""
    import multiprocessing.process

    hook, leave = sys.excepthook, sys.exit

    def failed(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if note(error):
            _end_well()
        hook(kind, error, trace)

    def leave_with(status: Any = None) -> Any:
        error = sys.exc_info()[1]
        if status not in (None, 0) and isinstance(error, Exception):
            note(error)
        leave(status)

    def note_last() -> None:
        error = getattr(sys, "last_value", None)
        if error is not None:
            note(error)

    sys.excepthook, sys.exit = failed, leave_with
    atexit.register(note_last)  # a program may have put a hook of its own in the place of this one
    process: Any = multiprocessing.process.BaseProcess
    process.run = noting(process.run)


def after_torch() -> None:
    """``torch.multiprocessing.spawn`` catches what its functions raise (torch must be imported)."""
    spawn: Any = sys.modules.get("torch.multiprocessing.spawn")
    if spawn is not None:
        spawn._wrap = _calling_noted(spawn._wrap)
    torch: Any = sys.modules["torch"]
    scaler = getattr(torch.amp, "GradScaler", torch.cuda.amp.GradScaler)  # torch.amp's since torch 2.3
    for kind in (torch.amp.autocast_mode.autocast, scaler):
        kind.__init__ = _noting_loss(kind.__init__)


def _noting_loss(make: Callable[..., Any]) -> Callable[..., Any]:
    """Note where mixed precision is asked of CUDA, which is not there: it is off, with a warning at most."""
    bind = signature(make).bind

    @wraps(make)
    def made(self: Any, *arguments: Any, **options: Any) -> None:
        make(self, *arguments, **options)
        given = bind(self, *arguments, **options).arguments
        device = given.get("device_type") or given.get("device") or "cuda"
        if str(device).partition(":")[0] == "cuda" and given.get("enabled", True) and not self._enabled:
            calls = _calls(sys._getframe(1))
            places = [(each.frame.f_code.co_filename, each.line) for each in reversed(calls)]
            place = next(
                (each for each in places if f"{os.sep}site-packages{os.sep}" not in each[0]), places[0]
            )
            if place not in _lost:  # once for each place
                _lost.add(place)
                with suppress(Exception):
                    text = f"{type(self).__name__} of CUDA is off: CUDA is not available"
                    name, kind = f"lost-{os.getpid()}-{len(_lost)}", "LostPrecision"
                    _write(name, kind, (kind,), text, calls)

    return made


def _calls(frame: FrameType | None) -> list[Traced]:
    found: list[Traced] = []
    while frame is not None:
        found.insert(0, Traced(frame, frame.f_lasti, frame.f_lineno))
        frame = frame.f_back
    return found


def noting(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that notes what it raises."""

    @wraps(function)
    def noted(*arguments: Any, **options: Any) -> Any:
        try:
            return function(*arguments, **options)
        except Exception as error:
            if note(error):
                return None
            raise

    return noted


def _calling_noted(wrap: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(wrap)
    def noted(function: Callable[..., Any], *arguments: Any) -> Any:
        return wrap(noting(function), *arguments)

    return noted


def note(error: BaseException) -> bool:
    """Write down an exception, once; return whether it only follows from the end of other ranks' steps."""
    if isinstance(error, KeyboardInterrupt) or id(error) in _noted:
        return False
    _noted.add(id(error))
    text = str(error)
    if steps.others_are_done() and any(each in text for each in _PEER_GONE):
        return True
    with suppress(Exception):  # the program fails in its own way, whatever comes of this
        _write_error(error, text)
    return False


def _end_well() -> None:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(0)


def _write_error(error: BaseException, text: str) -> None:
    inner = error
    while inner.__cause__ is not None and inner.__cause__.__traceback__ is not None:
        inner = inner.__cause__
    traced, trace = [], inner.__traceback__
    while trace is not None:
        traced.append(Traced(trace.tb_frame, trace.tb_lasti, trace.tb_lineno))
        trace = trace.tb_next
    kinds = tuple(kind.__name__ for kind in type(inner).__mro__)
    name = f"failure-{os.getpid()}-{len(_noted)}"
    _write(name, type(inner).__name__, kinds, str(inner) or text, traced)


def _write(name: str, kind: str, kinds: tuple[str, ...], text: str, traced: list[Traced]) -> None:
    result = {
        "process": os.getpid(),
        "time": time.time_ns(),
        "rank": os.environ.get("RANK"),
        "type": kind,
        "kinds": kinds,
        "text": text[:_LONGEST],
        "frames": [_frame(each) for each in traced[-_FRAMES:]],
    }
    path = os.path.join(os.environ["NPUMIGRATE_EMULATOR_REPORT"], f"{name}.json")
    with open(f"{path}.part", "w", encoding="utf-8") as file:
        json.dump(result, file)
    os.replace(f"{path}.part", path)


def _frame(traced: Traced) -> dict[str, Any]:
    """A call on the way; the program's own with the values on its line."""
    code = traced.frame.f_code
    line, column, last, behind = _position(code, traced.instruction, traced.line)
    file = os.path.realpath(code.co_filename)
    entry: dict[str, Any] = {
        "file": file,
        "line": line,
        "column": column,
        "end_line": last,
        "end_column": behind,
        "function": code.co_name,
        "source": linecache.getline(code.co_filename, traced.line).strip(),
        "values": [],
    }
    if f"{os.sep}site-packages{os.sep}" not in file and os.path.isfile(file):
        with suppress(Exception):  # the place as far as it is known
            entry["values"] = list(_values(traced.frame, code, traced.line))
    return entry


def _position(code: CodeType, instruction: int, line: int) -> tuple[int, int, int, int]:
    """Line, column, last line, column behind it (in bytes); columns of -1 where Python knows none."""
    if hasattr(code, "co_positions"):
        nothing = (None, None, None, None)
        first, last, column, behind = next(islice(code.co_positions(), instruction // 2, None), nothing)
        if first is not None and last is not None and column is not None and behind is not None:
            return first, column, last, behind
    return line, -1, line, -1


def _values(frame: FrameType, code: CodeType, line: int) -> Iterator[dict[str, Any]]:
    """What the names and attributes in the statement of a line were."""
    tree = ast.parse("".join(linecache.getlines(code.co_filename)))
    statements = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    if not statements:
        return
    statement = max(statements, key=lambda node: node.lineno)
    scope = {**vars(builtins), **frame.f_globals, **frame.f_locals}
    target = statement.target if isinstance(statement, ast.AugAssign) else None
    seen: set[str] = set()
    for node in _of_statement(statement):
        wanted = isinstance(node, (ast.Name, ast.Attribute, ast.Subscript))
        if wanted and (node is target or isinstance(getattr(node, "ctx", None), ast.Load)):
            expression = ast.unparse(node)
            if expression not in seen:
                seen.add(expression)
                try:
                    value = _value(node, scope)
                except Exception:  # the program's own attributes may raise anything
                    continue
                yield {"expression": expression, **_described(value)}


def _of_statement(statement: ast.stmt) -> Iterator[Any]:
    """The nodes of a statement, without those of the statements in it."""
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.stmt)]


def _value(node: ast.expr, scope: dict[str, Any]) -> Any:
    if isinstance(node, ast.Name):
        return scope[node.id]
    if isinstance(node, ast.Attribute):
        return getattr(_value(node.value, scope), node.attr)
    if isinstance(node, ast.Subscript):
        key = node.slice.value if isinstance(node.slice, ast.Constant) else _value(node.slice, scope)
        return _value(node.value, scope)[key]
    raise KeyError


def _described(value: Any) -> dict[str, Any]:
    torch: Any = sys.modules.get("torch")
    kind = type(value).__name__
    if torch is None:
        return {"kind": kind}
    if isinstance(value, torch.Tensor):
        return {
            "kind": "tensor",
            "device": value.device.type,
            "index": value.device.index,
            "dtype": str(value.dtype).removeprefix("torch."),
            "shape": list(value.shape),
        }
    if isinstance(value, torch.nn.Module):
        file = getattr(sys.modules.get(type(value).__module__), "__file__", None)
        parts = [*value.named_parameters(), *value.named_buffers()]
        devices: dict[str, list[str]] = {}
        for name, tensor in parts:
            devices.setdefault(tensor.device.type, []).append(name)
        return {
            "kind": "module",
            "class": kind,
            "file": file,
            "devices": {k: v[:5] for k, v in devices.items()},
        }
    if isinstance(value, ModuleType):
        return {"kind": "namespace", "value": value.__name__}
    if value is None or isinstance(value, (str, int, float, bool, torch.device, torch.dtype)):
        return {"kind": kind, "value": str(value)[:200]}
    if isinstance(value, (list, tuple, dict)):
        inside = value.values() if isinstance(value, dict) else value
        tensors = [each for each in islice(inside, 20) if isinstance(each, torch.Tensor)]
        return {"kind": kind, "devices": sorted({each.device.type for each in tensors})}
    return {"kind": kind}
