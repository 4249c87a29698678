"""Counts how often this process evaluates certain places of the project, such as a ``torch.cuda`` left over.

Nothing of torch is replaced: CPython itself says which instruction runs, and the compiler's own positions
say which expression an instruction belongs to. From Python 3.12 on ``sys.monitoring`` asks only about the
functions that hold such a place, and about an instruction that belongs to none only once. Before,
``sys.settrace`` is called at each call of a Python function, and goes on only in those functions; Python
3.10 has no positions, and counts lines.
"""

from __future__ import annotations

import dis
import json
import mmap
import os
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

Span = tuple[int, int, int, int]  # line, column in bytes, last line, column behind the last byte

_POSITIONS = sys.version_info >= (3, 11)
_TOOL = 4  # one of sys.monitoring's tools that has no meaning of its own


@dataclass(frozen=True)
class Marked:
    """The instructions of one function that stand for a place, by their offset, and their lines."""

    code: CodeType  # kept alive: it is known by its id
    places: dict[int, tuple[int, ...]]
    lines: frozenset[int]


_folder = ""
_files: dict[str, list[tuple[int, Span]]] = {}
_names: dict[str, str] = {}  # as code objects have it, to that of _files; empty: none of the project's
_foreign: set[str] = set()
_marked: dict[int, Marked] = {}
_counts: memoryview | None = None
_places = 0


def install() -> None:
    """Begin, if this run is to be watched."""
    global _folder, _places
    path = os.environ.get("NPUMIGRATE_EMULATOR_PLACES")
    if not path:
        return
    with open(path, encoding="utf-8") as file:
        for name, spans in json.load(file).items():
            _files[name] = [(_places + i, tuple(span)) for i, span in enumerate(spans)]
            _places += len(spans)
    if not _places:
        return
    _folder = os.path.dirname(path)
    os.register_at_fork(after_in_child=_forget_counts)
    if sys.version_info >= (3, 12):
        _monitor()
    else:
        threading.settrace(_at_call)
        sys.settrace(_at_call)


def _monitor() -> None:
    monitoring: Any = getattr(sys, "monitoring")  # noqa: B009 (not in Python 3.11)

    def at_start(code: CodeType, offset: int) -> Any:
        if id(code) not in _marked and _file_of(code):
            for marked in _mark(code):
                if marked.places:
                    monitoring.set_local_events(_TOOL, marked.code, monitoring.events.INSTRUCTION)
        return monitoring.DISABLE

    def at_instruction(code: CodeType, offset: int) -> Any:
        places = _marked[id(code)].places.get(offset)
        if places is None:
            return monitoring.DISABLE
        _count(places)
        return None

    monitoring.use_tool_id(_TOOL, "npumigrate")
    monitoring.register_callback(_TOOL, monitoring.events.PY_START, at_start)
    monitoring.register_callback(_TOOL, monitoring.events.INSTRUCTION, at_instruction)
    monitoring.set_events(_TOOL, monitoring.events.PY_START)


def _at_call(frame: FrameType, event: str, argument: Any) -> Any:
    code = frame.f_code
    if code.co_filename in _foreign or not _file_of(code):  # short, as it is called so often
        return None
    if id(code) not in _marked:
        _mark(code)
    frame.f_trace_opcodes = False
    return _in_function if _marked[id(code)].places else None


def _in_function(frame: FrameType, event: str, argument: Any) -> Any:
    if event == "line":
        frame.f_trace_opcodes = frame.f_lineno in _marked[id(frame.f_code)].lines
    elif event == "opcode":
        _count(_marked[id(frame.f_code)].places.get(frame.f_lasti, ()))
    return _in_function


def _file_of(code: CodeType) -> str:
    name = code.co_filename
    known = _names.get(name)
    if known is None:
        real = os.path.realpath(name)
        known = _names[name] = real if real in _files else ""
        if not known:
            _foreign.add(name)
    return known


def _mark(code: CodeType) -> list[Marked]:
    """Find the places in a function or module, and in all that is defined inside of it."""
    codes = list(_with_inner(code))
    found: dict[int, dict[int, tuple[int, ...]]] = {id(each): {} for each in codes}
    lines: dict[int, set[int]] = {id(each): set() for each in codes}
    instructions = [(each, list(_instructions(each))) for each in codes]
    for place, span in _files[_file_of(code)]:
        for each, offset, line in _standing_for(span, instructions):
            found[id(each)][offset] = (*found[id(each)].get(offset, ()), place)
            lines[id(each)].add(line)
    marked = [Marked(each, found[id(each)], frozenset(lines[id(each)])) for each in codes]
    _marked.update((id(each.code), each) for each in marked)
    return marked


def _with_inner(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _with_inner(constant)


def _instructions(code: CodeType) -> Iterator[tuple[int, str, Span]]:
    if not _POSITIONS:
        for offset, line in dis.findlinestarts(code):
            yield offset, "", (line, 0, line, 1 << 30)
        return
    for instruction in dis.get_instructions(code):
        positions: Any = getattr(instruction, "positions")  # noqa: B009 (not in Python 3.10)
        if positions is None or None in positions:
            continue
        line, end_line, column, end_column = positions
        yield instruction.offset, instruction.opname, (line, column, end_line, end_column)


def _standing_for(
    span: Span, instructions: list[tuple[CodeType, list[tuple[int, str, Span]]]]
) -> Iterator[tuple[CodeType, int, int]]:
    """Yield code, offset and line of what runs exactly when the expression at ``span`` does.

    That is its last instruction, also in the copies that the compiler makes of a ``finally`` block.
    For a constant that became part of another it is the one that loads that.
    """
    begin, end = span[:2], span[2:]
    if not _POSITIONS:
        # The innermost function that has the line.
        for code, inside in reversed(instructions):
            offset = next((offset for offset, _, (line, *_) in inside if line == span[0]), None)
            if offset is not None:
                yield code, offset, span[0]
                return
        return
    for code, inside in instructions:
        own = [item for item in inside if begin <= item[2][:2] and item[2][2:] <= end]
        if own:
            _, name, where = own[-1]
            yield from ((code, offset, where[0]) for offset, *rest in own if rest == [name, where])
            return
    around = [
        ((where[2] - where[0], where[3] - where[1]), code, offset, where)
        for code, inside in instructions
        for offset, name, where in inside
        if name.endswith("_CONST") and where[:2] <= begin and end <= where[2:]
    ]
    if around:
        _, code, offset, where = min(around, key=lambda item: item[0])
        yield code, offset, where[0]


def _count(places: tuple[int, ...]) -> None:
    global _counts
    for place in places:
        if _counts is None:
            _counts = _new_counts()
        _counts[place] += 1


def _new_counts() -> memoryview:
    """Return counters in a file: what is counted there is kept, however the process ends."""
    base = os.path.join(_folder, f"reached-{os.getpid()}")
    with open(f"{base}.json", "w", encoding="utf-8") as file:
        json.dump({"process": os.getpid(), "rank": os.environ.get("RANK"), "command": sys.argv}, file)
    with open(f"{base}.counts", "wb+") as counts:
        counts.truncate(8 * _places)
        return memoryview(mmap.mmap(counts.fileno(), 8 * _places)).cast("Q")


def _forget_counts() -> None:
    global _counts
    _counts = None
