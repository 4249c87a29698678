"""A Jupyter notebook as one Python text, and back: only the source of changed cells gets other bytes.

The code cells stand one below the other, each followed by a line that marks its end. What IPython adds to
Python (``%magic``, ``!command``, ``name?``) is blanked, but for a statement behind ``%time`` and its like.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Optional

from migrator.files.errors import Unreadable
from migrator.files.source import LINE_END

_SPACE = re.compile(r"[ \t\n\r]*")
# ``!=``, ``% (`` and an indented ``% `` begin lines of Python: black breaks long expressions before them.
_MAGIC = re.compile(
    r"(?P<indent>[ \t]*)(?:(?P<target>[\w.,\[\]'\"][\w.,\s\[\]'\"]*=\s*)?"
    r"(?:!(?!=)|%(?!\s*[(\[{'\"]|(?<=[ \t]%)\s))(?s:.*)"
    r"|\?{1,2}[\w.*]+\s*|[\w.*]+\?{1,2}\s*)\Z"
)
# Databricks has one % for a whole cell, alone on its line or before a text.
_CELL_MAGIC = re.compile(r"%%\s*(\w*)|%(?:md\b|(?:sh|sql|scala|r|fs)\s*\Z)")
# These cells hold Python below their first line; all others are of another language.
_PYTHON_MAGICS = frozenset(
    {"time", "timeit", "capture", "prun", "memit", "mprun", "debug", "python", "python3"}
)
# These take a statement behind their options, which stands as ``if 1: statement`` at the same columns.
_STATEMENT = re.compile(
    r"([ \t]*)(%%?(?:time|timeit|prun|memit)\s+(?:-(?:[nrpslTD] ?[\w./]+|[oqtcvi])\s+)*)(?=[^\s-])(.*)"
)
_STANDS_FOR = "if 1:"
# As rules write them that report several places at once, all of one block.
_ROWS = re.compile(r"(?<=\(lines )\d+(?:, \d+)*(?=\))")
_DECODER = json.JSONDecoder()


class Cell(NamedTuple):
    """A code cell: its 1-based number among all cells, and where its source is in the JSON text.

    ``first`` is the row of its first line in the notebook's text, ``rows`` how many it has. ``error`` is the
    row inside the cell and the message where it is not Python. A cell that is not ``checked``, for that or
    because it is of another language, stands for empty lines, and is never written.
    """

    number: int
    span: tuple[int, int]
    source: str
    first: int
    rows: int
    checked: bool = True
    error: Optional[tuple[int, str]] = None


class Notebook(NamedTuple):
    """``text`` is the Python of all code cells, if ``is_python``; ``raw`` the file's JSON text.

    ``hidden`` are the lines for which a mark with their number stands, or what stands there before a
    statement. ``written`` are the new sources of cells that are not checked, by their numbers.
    """

    name: str
    text: str
    raw: str
    cells: tuple[Cell, ...]
    mark: str
    hidden: tuple[str, ...]
    is_python: bool = True
    written: Mapping[int, str] = MappingProxyType({})


def read_notebook(data: bytes, name: str) -> Notebook:
    """The notebook in ``data``. Raises Unreadable where it is none."""
    try:
        raw = data.decode("utf-8")
        content = json.loads(raw)
    except UnicodeDecodeError as error:
        raise Unreadable("not UTF-8 (byte {start})", start=error.start) from error
    except ValueError as error:
        raise Unreadable("not a notebook: {error}", error=error) from error
    except RecursionError as error:
        raise Unreadable("not a notebook: nested too deeply") from error
    if not isinstance(content, dict) or not isinstance(content.get("cells"), list):
        raise Unreadable("not a notebook of format 4: it has no list of cells")
    return of_cells(name, raw, _sources(raw), _is_python(content))


def of_cells(
    name: str, raw: str, sources: Iterable[tuple[int, tuple[int, int], str]], is_python: bool = True
) -> Notebook:
    """The notebook with some code cells, each with its number, its place in ``raw`` and its source.

    ``raw`` holds the sources in some form; only ``encode_notebook`` needs more of it. The cells
    are of another language unless ``is_python``.
    """
    mark = "#%%"
    while mark in raw:
        mark += "%"
    cells: list[Cell] = []
    hidden: list[str] = []
    pieces: list[str] = []
    row = 1
    for number, span, source in sources:
        lines = source.split("\n")
        python, wrong = _python(lines, mark, hidden) if is_python else (None, None)
        rows = len(LINE_END.findall(source + "\n"))  # Python knows more line ends than a notebook has
        cells.append(Cell(number, span, source, row, rows, python is not None, wrong))
        pieces += [*(python or [""] * rows), f"{mark} {number}"]
        row += rows + 1
    text = "\n".join(pieces) + "\n" if pieces else ""
    return Notebook(name, text, raw, tuple(cells), mark, tuple(hidden), is_python)


def with_hidden(notebook: Notebook, text: str) -> str:
    """Lines of the notebook's text, or of a new version of it, with what IPython adds to Python."""
    mark = re.escape(notebook.mark)

    def before(match: re.Match[str]) -> str:
        if match[1]:
            return notebook.hidden[int(match[1])]
        return match[2] + notebook.hidden[int(match[4])] + match[3]

    line = rf"^(?:.*{mark}(\d+)|([ \t]*){_STANDS_FOR} *(?! )(.*) {mark}\+(\d+))$"
    return re.sub(line, before, text, flags=re.MULTILINE) if notebook.mark in text else text


def changed_cells(notebook: Notebook, text: str) -> list[tuple[Cell, str]]:
    """The cells whose source is another one in ``text``, a new version of ``notebook.text``, each with it.

    Raises Unreadable where the text can no longer be split into cells.
    """
    new: dict[int, str] = {}
    gathered: list[str] = []
    for line in text.split("\n"):
        if line.startswith(notebook.mark + " "):
            new[int(line[len(notebook.mark) :])] = with_hidden(notebook, "\n".join(gathered))
            gathered = []
        else:
            gathered.append(line)
    if len(new) != len(notebook.cells) or any(notebook.mark in source for source in new.values()):
        raise Unreadable("the changed cells cannot be matched to the original ones: left unchanged")
    others = {cell.number: cell.source for cell in notebook.cells if not cell.checked} | {**notebook.written}
    pairs = ((cell, (new | others)[cell.number]) for cell in notebook.cells)
    return [(cell, source) for cell, source in pairs if source != cell.source]


def encode_notebook(notebook: Notebook, text: str) -> bytes:
    """The file's bytes with ``text``, a new version of ``notebook.text``, in its cells.

    Raises Unreadable where the text can no longer be split into cells.
    """
    raw = notebook.raw
    for cell, source in reversed(changed_cells(notebook, text)):
        start, end = cell.span
        raw = raw[:start] + _as_json(source, raw[start:end], notebook.raw) + raw[end:]
    return raw.encode("utf-8")


def cell_place(notebook: Notebook, row: int) -> tuple[Cell, int]:
    """The cell that a row of the text lies in, and the row inside of it.

    The line that marks the end of a cell counts as the row below its last one.
    """
    place = bisect_right([cell.first for cell in notebook.cells], row) - 1
    cell = notebook.cells[max(place, 0)]
    return cell, row - cell.first + 1


def message_in_cell(notebook: Notebook, message: str) -> str:
    """A message about a place in the text, with the other rows that it names as they count in their cell."""

    def in_cell(match: re.Match[str]) -> str:
        return ", ".join(str(cell_place(notebook, int(row))[1]) for row in match[0].split(", "))

    return _ROWS.sub(in_cell, message)


def _is_python(content: dict[str, Any]) -> bool:
    metadata = content.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    for key, name in (("language_info", "name"), ("kernelspec", "language")):
        info = metadata.get(key)
        if isinstance(info, dict) and isinstance(info.get(name), str):
            return str(info[name]).lower() in ("python", "ipython")
    return True


def _sources(raw: str) -> Iterator[tuple[int, tuple[int, int], str]]:
    """Number, place in the JSON text and source of each code cell."""
    # Of a key that stands there twice the last one counts, as to every reader of JSON.
    cells = {key: start for key, start, end in _values(raw, _skip(raw, 0))}["cells"]
    for number, (key, start, end) in enumerate(_values(raw, cells), 1):
        if raw[start] != "{":
            continue
        members = {key: (begin, end) for key, begin, end in _values(raw, start)}
        if "source" not in members or "cell_type" not in members:
            continue
        begin, end = members["cell_type"]
        if json.loads(raw[begin:end]) != "code":
            continue
        begin, end = members["source"]
        source = json.loads(raw[begin:end])
        if isinstance(source, list) and all(isinstance(line, str) for line in source):
            source = "".join(source)
        if isinstance(source, str):
            yield number, (begin, end), source


def _skip(raw: str, position: int) -> int:
    match = _SPACE.match(raw, position)
    return match.end() if match else position


def _values(raw: str, position: int) -> Iterator[tuple[str, int, int]]:
    """Key (none in an array), start and end of each value of the object or array at a position."""
    named = raw[position] == "{"
    position = _skip(raw, position + 1)
    while raw[position] not in "}]":
        key = ""
        if named:
            key, position = _DECODER.raw_decode(raw, position)
            position = _skip(raw, _skip(raw, position) + 1)
        _, end = _DECODER.raw_decode(raw, position)
        yield key, position, end
        position = _skip(raw, end)
        if raw[position] == ",":
            position = _skip(raw, position + 1)


def _python(
    lines: list[str], mark: str, hidden: list[str]
) -> tuple[Optional[list[str]], Optional[tuple[int, str]]]:
    """As many lines of Python, None where they are something else; and what is wrong with them."""
    magic = next((_CELL_MAGIC.match(line) for line in lines if line.strip()), None)
    if magic and magic.group(1) not in _PYTHON_MAGICS:
        return None, None
    if not magic and _error(lines) is None:  # a line may begin with % and be Python
        return lines, None
    known = len(hidden)
    python = []
    goes_on = False
    # IPython takes away the indentation of the first line.
    shift = next((len(line) - len(line.lstrip()) for line in lines if line.strip()), 0)
    for line in lines:
        match = _MAGIC.match(line)
        if not goes_on and not match:
            python.append(line)
            continue
        statement = None if goes_on else _STATEMENT.fullmatch(line)
        if statement and _error([f"{_STANDS_FOR} {statement[3]}"]) is None:
            before = statement[1] + _STANDS_FOR.ljust(len(statement[2]))
            python.append(f"{before}{statement[3]} {mark}+{len(hidden)}")
            hidden.append(statement[2])
            continue
        marked = f"{mark}{len(hidden)}"
        hidden.append(line)
        if match and not goes_on:
            target = match["target"] or ""
            marked = f"{match['indent'][shift:]}{target}{'None' if target else 'pass'} {marked}"
        python.append(marked)
        goes_on = line.rstrip().endswith("\\")
    error = _error(python)
    if error is not None:
        del hidden[known:]
        return None, error
    return python, None


def _error(lines: list[str]) -> Optional[tuple[int, str]]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse("\n".join(lines))
    except SyntaxError as error:
        return min(max(error.lineno or 1, 1), len(lines)), error.msg or "invalid syntax"
    except (ValueError, RecursionError, MemoryError) as error:
        return 1, str(error) or type(error).__name__
    return None


def _as_json(source: str, before: str, raw: str) -> str:
    """A source in the form that the one before had: a text or a list of lines, spaced as it was.

    Lines that it had are spelled as they were: some programs write ``\\u003c`` for ``<``.
    """
    ascii_only = raw.isascii() and "\\u" in raw
    if not before.startswith("["):
        return json.dumps(source, ensure_ascii=ascii_only)
    spans = [(start, end) for _, start, end in _values(before, 0)]
    spelled = {json.loads(before[start:end]): before[start:end] for start, end in spans}
    texts = re.findall(r"[^\n]*\n|[^\n]+", source)
    lines = [spelled.get(text) or json.dumps(text, ensure_ascii=ascii_only) for text in texts]
    head = before[: _skip(before, 1)]
    tail = before[len(before[:-1].rstrip(" \t\n\r")) :]
    between = before[spans[0][1] : spans[1][0]] if len(spans) > 1 else "," + (head[1:] or " ")
    return head + between.join(lines) + tail
