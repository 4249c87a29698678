"""What a run is watched for, the places that speak of CUDA or NCCL, and what its processes noted."""

from __future__ import annotations

import ast
import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Optional

from migrator.field_types import built
from migrator.files.discover import discover
from migrator.files.source import text_below
from migrator.insight.recorded import noted
from migrator.light import Frozen
from migrator.names.device_strings import is_docstring, names_backend, names_device, written
from migrator.names.index import ModuleIndex, parsed
from migrator.names.tree import attributes
from migrator.verify.diagnosis import process_name

CPU = "cpu"
Span = tuple[int, int, int, int]
# The words that a line has to hold; names that stand for one of them are followed by the index.
_WORDS = ("cuda", "is_cuda", "nccl", "is_nccl_available")
_CUDA = re.compile(r"torch\.cuda(?:\.|\Z)")


class Place(Frozen):
    """An expression, or an import, that speaks of CUDA or NCCL.

    ``span`` is line, column, last line, column behind the last byte, in bytes of the UTF-8 text as in
    ``ast`` and in the compiler's positions. ``kind`` is the API's full name, ``.cuda``, ``.is_cuda``,
    ``'cuda'`` or ``'nccl'``. ``source`` is the text of its first line.
    """

    file: str
    path: str
    span: Span
    kind: str
    source: str

    @property
    def line(self) -> int:
        """The line where it begins."""
        return self.span[0]


def find_places(root: Path) -> list[Place]:
    """Return the places in all Python files below a folder, by file and position.

    Files that cannot be parsed have none: they cannot run either. Raises Unreadable for ``root`` itself.
    """
    found: list[Place] = []
    for entry in discover(root):
        text = text_below(root, entry.name) if entry.kind == "python" else None
        index = parsed(text, _WORDS) if text and any(word in text for word in _WORDS) else None
        if index is None:
            continue
        path = os.path.realpath(entry.path)
        for span, kind in sorted({(_span(index, node), kind) for node, kind in _nodes(index)}):
            first, last = index.line_span(span[0], span[0])
            source = index.data[first:last].decode("utf-8").strip()
            found.append(Place(entry.name, path, span, kind, source))
    return found


def _nodes(index: ModuleIndex) -> Iterator[tuple[ast.AST, str]]:
    for statement in index.imports:
        names = [alias.name for alias in statement.names]
        module = getattr(statement, "module", None) or ""
        wanted = [module, *(f"{module}.{name}" for name in names)] if module else names
        name = next((name for name in wanted if _CUDA.match(name)), None)
        if name and not getattr(statement, "level", 0):
            yield statement, name
    for reference in index.refs:
        name = index.qualified_name(reference)
        if _CUDA.match(name) or name.endswith(".is_nccl_available"):
            yield reference, name
        else:  # the members of tensors and modules in a dotted name: x.cuda only where it is called
            for node in attributes(reference):
                if node.attr == "is_cuda" or (node.attr == "cuda" and index.call_of(node)):
                    yield node, f".{node.attr}"
    for string in index.strings:
        if is_docstring(index, string):
            continue
        if names_device(index, string):
            yield string, "'cuda'"
        elif names_backend(written(index, string)):
            yield string, "'nccl'"


def _span(index: ModuleIndex, node: ast.AST) -> tuple[int, int, int, int]:
    """Where a node is; inside f-strings ``ast`` itself has wrong places before Python 3.12."""
    begin, end = index.start(node), index.end(node)
    first, last = index.line_of(begin), index.line_of(end)
    return first, begin - index.line_span(first, first)[0], last, end - index.line_span(last, last)[0]


class Work(Frozen):
    """How much was computed on one kind of device.

    ``products`` are matrix products, convolutions and their like, ``multiply_adds`` the ones in them.
    """

    operators: int = 0
    products: int = 0
    multiply_adds: int = 0

    def __add__(self, other: Work) -> Work:
        return Work(*map(sum, zip(astuple(self), astuple(other))))


class NewShapes(Frozen):
    """An operator that met new shapes in ``steps`` steps after the first; ``shapes`` are all of them.

    ``then`` are the first late ones, and ``place`` is the line of the program where they came.
    """

    operator: str
    shapes: int
    steps: int
    place: str
    first: str
    then: str


class Bounded(Frozen):
    """A process that ended because it had made the steps, or else the forward passes, that were asked for."""

    process: int
    parent: int
    rank: Optional[str]
    steps: int
    passes: int


class Process(Frozen):
    """One process that imported torch.

    ``operators`` are by NPU, ``work`` by device, then forward and backward; ``cuda_on_cpu`` is how often the
    CPU stood in for CUDA, ``steps`` are those of its optimizers. ``transfer_to_npu``: torch_npu's module of
    this name makes torch.cuda mean the NPU. ``files``: the Python files that it loaded, without packages.
    """

    process: int
    rank: Optional[str]
    command: tuple[str, ...]
    torch_npu: bool
    transfer_to_npu: bool
    operators: dict[str, dict[str, int]]
    without_npu_kernel: tuple[str, ...]
    collectives: dict[str, dict[str, int]]
    work: dict[str, dict[str, Work]]
    cuda_on_cpu: int = 0
    steps: int = 0
    new_shapes: tuple[NewShapes, ...] = ()
    files: tuple[str, ...] = ()

    def amount(self, direction: str, npu: bool) -> Work:
        """What was computed forward or backward, on all NPUs or on the CPU."""
        parts = [both[direction] for device, both in self.work.items() if (device != CPU) == npu]
        return sum(parts, Work())


class Reached(Frozen):
    """A place that was evaluated: how often, and by which ranks or else processes."""

    place: Place
    count: int
    by: tuple[str, ...]


def read_processes(folder: Path) -> list[Process]:
    """Return the processes that wrote a report, by rank and number."""
    found = []
    for data in noted(folder, "process"):
        shapes, on_cpu = data["dynamic_shapes"], data["cuda_on_cpu"] or 0
        more = {"steps": shapes["steps"], "new_shapes": shapes["operators"], "cuda_on_cpu": on_cpu}
        found.append(built(Process, {**data, **more}))
    return found


def read_bounded(folder: Path) -> list[Bounded]:
    """Return the processes that came to the end of their steps, by rank and number."""
    return [built(Bounded, data) for data in noted(folder, "steps")]


def read_reached(folder: Path, places: Sequence[Place], processes: Sequence[Process]) -> list[Reached]:
    """Return the places that any process evaluated. ``places`` is what ``write_places`` was given."""
    ranks = {process.process: process.rank for process in processes}
    total: Counter[int] = Counter()
    by: dict[int, dict[str, None]] = {}
    for data in noted(folder, "reached"):
        process = data["process"]
        who = process_name(process, ranks.get(process) or data["rank"])
        counts = folder / f"reached-{process}.counts"
        for number, count in enumerate(memoryview(counts.read_bytes()).cast("Q") if counts.exists() else ()):
            if count:
                total[number] += count
                by.setdefault(number, {})[who] = None
    return [Reached(places[number], total[number], tuple(by[number])) for number in sorted(total)]


def write_places(path: Path, places: Sequence[Place]) -> None:
    """Write what the processes are to be watched for; their order is the order of ``places``."""
    spans: dict[str, list[tuple[int, int, int, int]]] = {}
    for place in places:
        spans.setdefault(place.path, []).append(place.span)
    path.write_text(json.dumps(spans), encoding="utf-8")


def sum_work(processes: Sequence[Process], direction: str, npu: bool) -> Work:
    """Return what was computed forward or backward, on NPUs or on the CPU, in all processes."""
    return sum((process.amount(direction, npu) for process in processes), Work())
