"""What stands in a notebook beside its Python, as texts of their own types, and back into the notebook.

That are its commands (``!python train.py``, ``%pip install``, the cells of ``%%bash``) as one script, and the
files that its cells write with ``%%writefile``. Each text has as many lines as the notebook's up to its own,
so that a place in it is that place in the notebook.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

from migrator.files.document import type_of
from migrator.files.errors import Unreadable
from migrator.files.notebook import Notebook, cell_place
from migrator.files.source import Source

# What IPython hands to a shell, or takes as a shell does, with what stands before it in the line.
_COMMAND = re.compile(
    r"(?P<target>[ \t]*(?:[\w.,\[\]'\"]+\s*=\s*)?)"
    r"(?:!!?|%(?:system|sx|sh|bash)\s+|%(?=(?:pip|conda)\s)|%run\s+(?:-\w+\s+)*|%(?:set_)?env\s+(?=\w+[=\s]))"
)
_OF_SHELL = re.compile(r"%%(?:bash|sh|zsh|script\s+(?:ba|z)?sh)\b|%sh\s*\Z")
_WRITES = re.compile(r"%%(?:writefile|file)\s+(?:-a\s+)?[\"']?([^\s\"']+)")
_PROSE = re.compile(r"\s*%%?\s*(?:md|markdown|html|latex|svg|javascript|js)\b")


class Part(NamedTuple):
    """One such text; ``cells`` are the numbers of those that it holds whole, without their first lines."""

    source: Source
    cells: tuple[int, ...] = ()


def parts_of(notebook: Notebook) -> Iterator[Part]:
    """The texts in a notebook for Python."""
    if not notebook.is_python:
        return
    rows, cells = _commands(notebook), []
    for cell in notebook.cells:
        first, *body = cell.source.split("\n")
        if cell.checked or cell.error:
            continue
        if _OF_SHELL.match(first):
            cells.append(cell.number)
            rows[cell.first : cell.first + len(body)] = body
        elif found := _WRITES.match(first):
            name, text = posixpath.join(posixpath.dirname(notebook.name), found[1]), "\n".join(body)
            of_type = type_of(name, text.encode("utf-8"))
            if of_type or name.endswith(".py"):
                yield Part(Source(name, "\n" * cell.first + text + "\n", type=of_type), (cell.number,))
    if any(rows):
        yield Part(Source(notebook.name, "\n".join(rows), type="shell"), tuple(cells))


def with_part(notebook: Notebook, part: Part, text: str) -> Notebook:
    """The notebook with another text of a part. Raises Unreadable where its lines cannot be separated."""
    written, hidden = dict(notebook.written), list(notebook.hidden)
    cells = [(cell, cell.source.split("\n")) for cell in notebook.cells if cell.number in part.cells]
    if part.source.name != notebook.name:
        ((cell, lines),) = cells
        new = text.replace("\n" * cell.first, "", 1).removesuffix("\n")
        return notebook._replace(written={**written, cell.number: f"{lines[0]}\n{new}"})
    before, rows = _commands(notebook), text.split("\n")
    if len(rows) != len(before):
        raise Unreadable("the changed cells cannot be matched to the original ones: left unchanged")
    for cell, lines in cells:
        written[cell.number] = "\n".join([lines[0], *rows[cell.first : cell.first + len(lines) - 1]])
    for place, number in _places(notebook):
        if rows[place] != before[place]:
            found = _COMMAND.match(hidden[number])
            start = found.end() if found else 0
            is_read = found is not None and "=" in found["target"]
            hidden[number] = hidden[number][:start] + rows[place][start : -1 if is_read else None]
    return notebook._replace(written=written, hidden=tuple(hidden))


def left_lines(notebook: Notebook, known: Collection[int]) -> Iterator[tuple[int, str]]:
    """What is neither Python nor prose nor in a part, with the numbers of the cells. A broken cell has none.

    ``known`` are the cells that parts hold.
    """
    commands = _commands(notebook)
    for place, number in _places(notebook):
        if not commands[place]:
            yield cell_place(notebook, place + 1)[0].number, notebook.hidden[number]
    for cell in notebook.cells:
        if not (cell.checked or cell.error or cell.number in known or _PROSE.match(cell.source)):
            yield cell.number, cell.source


def _places(notebook: Notebook) -> Iterator[tuple[int, int]]:
    """The rows that stand for hidden lines, from 0, each with the number of its line."""
    mark = re.compile(rf"{re.escape(notebook.mark)}(\d+)\Z")
    for place, row in enumerate(notebook.text.split("\n")):
        if found := mark.search(row):
            yield place, int(found[1])


def _commands(notebook: Notebook) -> list[str]:
    """The hidden lines that are commands, at their rows and columns, as a shell takes them."""
    rows, goes_on = [""] * (notebook.text.count("\n") + 1), -1
    for place, number in _places(notebook):
        line = notebook.hidden[number]
        if goes_on == place:
            rows[place] = line
        elif found := _COMMAND.match(line):
            rest = line[found.end() :]
            if re.search(r"%(?:set_)?env", found[0]):
                rest = re.sub(r"\A(\w+)\s", r"\1=", rest)
            if "=" in found["target"]:  # what the command prints is read
                rows[place] = f"{'$(':>{found.end()}}{rest})"
            else:
                rows[place] = " " * found.end() + rest
        if rows[place].endswith("\\"):
            goes_on = place + 1
    return rows
