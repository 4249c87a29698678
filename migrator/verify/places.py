"""The places of a project that speak of CUDA or NCCL: what a run is watched for."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from migrator.files.discover import discover
from migrator.files.source import text_below
from migrator.names.device_strings import is_docstring, names_backend, names_device, written
from migrator.names.index import ModuleIndex, parsed
from migrator.names.tree import attributes

# The words that a line has to hold; names that stand for one of them are followed by the index.
_WORDS = ("cuda", "is_cuda", "nccl", "is_nccl_available")


@dataclass(frozen=True)
class Place:
    """An expression, or an import, that speaks of CUDA or NCCL.

    ``span`` is line, column, last line, column behind the last byte, in bytes of the UTF-8 text as in
    ``ast`` and in the compiler's positions. ``kind`` is the API's full name, ``.cuda``, ``.is_cuda``,
    ``'cuda'`` or ``'nccl'``. ``source`` is the text of its first line.
    """

    file: str
    path: str
    span: tuple[int, int, int, int]
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
        name = next((name for name in wanted if _of_torch_cuda(name)), None)
        if name and not getattr(statement, "level", 0):
            yield statement, name
    for reference in index.refs:
        name = index.qualified_name(reference)
        if _of_torch_cuda(name) or name.endswith(".is_nccl_available"):
            yield reference, name
        else:
            yield from _members(index, reference)
    for string in index.strings:
        if is_docstring(index, string):
            continue
        if names_device(index, string):
            yield string, "'cuda'"
        elif names_backend(written(index, string)):
            yield string, "'nccl'"


def _of_torch_cuda(name: str) -> bool:
    return name == "torch.cuda" or name.startswith("torch.cuda.")


def _members(index: ModuleIndex, reference: ast.expr) -> Iterator[tuple[ast.AST, str]]:
    """The members of tensors and modules in a dotted name: ``x.cuda`` only where it is called."""
    for node in attributes(reference):
        if node.attr == "is_cuda" or (node.attr == "cuda" and index.call_of(node)):
            yield node, f".{node.attr}"


def _span(index: ModuleIndex, node: ast.AST) -> tuple[int, int, int, int]:
    """Where a node is; inside f-strings ``ast`` itself has wrong places before Python 3.12."""
    begin, end = index.start(node), index.end(node)
    first, last = index.line_of(begin), index.line_of(end)
    return first, begin - index.line_span(first, first)[0], last, end - index.line_span(last, last)[0]
