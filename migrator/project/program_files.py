"""The files of a project as its programs see them: what each imports, its options, how it starts ranks.

Each text is parsed once, for all programs together. Its tree goes, small rows stay.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, cached_property
from hashlib import blake2b
from typing import Any, NamedTuple, Optional, Union

from migrator.data_folders import reports_yaml
from migrator.names.index import ModuleIndex, parsed
from migrator.names.tree import argument_of, bare_name, called_name, only_target, walk
from migrator.names.written_names import imported_places
from migrator.project.frameworks import distributed_words, listed
from migrator.project.module_names import Read, imported_names, place_of_import
from migrator.project.parser_options import WORDS, Option, options, positionals

_WORDS = frozenset({*WORDS, "spawn", "start_processes", "Process", "launch"})
_DEPTH = 4
_CALL = re.compile(r"\b(def\s+)?([^\W\d]\w*)\s*\(")


class Given(NamedTuple):
    """A value that callers of a ``function`` give: the parameter's name and place, and the ``depth`` left."""

    function: str
    name: str
    place: int
    depth: int


# Where a value may come from, the likeliest first: names of attributes, and what callers give.
Values = tuple[Union[str, Given], ...]


class KnownCall(NamedTuple):
    """A call by which programs start, join or use ranks.

    ``function`` is the one around it that has to be named elsewhere to be used; empty for what surely is.
    ``flags`` are the names of the conditions around it; ``values`` what it is given, by keyword, and as
    ``count`` the number of the processes that it starts. ``loops``: it stands in a loop over a range.
    """

    name: str
    function: str
    flags: tuple[str, ...] = ()
    values: dict[str, Values] = {}  # noqa: RUF012  # nobody changes it
    loops: bool = False


class FileRows(NamedTuple):
    """What programs want to know of a file.

    ``imports`` are modules and names in them, ``names`` the full ones of what is not imported relatively.
    ``calls``, ``variables`` and ``multiplies`` have the names of ``reports/launcher/starts.yaml``.
    """

    imports: tuple[tuple[str, str], ...]
    names: tuple[str, ...]
    trains: bool
    variables: frozenset[str]
    calls: tuple[KnownCall, ...] = ()
    multiplies: frozenset[str] = frozenset()
    options: tuple[Option, ...] = ()
    positionals: tuple[Option, ...] = ()
    subparsers: bool = False

    @property
    def distributed(self) -> bool:
        """Whether the file imports a library that starts ranks, or calls what sets them up."""
        return any(listed("distributed_libraries", name) for name in self.names) or any(
            listed("distributed_calls", call.name) for call in self.calls
        )


class ProgramFiles:
    """The files of a project, of which ``read`` gives the text; None where there is none.

    ``seen`` is called with the number of those that were read.
    """

    def __init__(self, read: Read, seen: Callable[[int], object] = lambda count: None) -> None:
        self.read = read
        self._seen = seen
        self._rows: dict[str, Optional[FileRows]] = {}
        self._place, self._imports = cache(self._placed), cache(self._imported)
        self.given = cache(self._given)

    def rows(self, name: str) -> Optional[FileRows]:
        """What is known of a file; None for one that cannot be read or parsed."""
        if name not in self._rows:
            text = self.read(name)
            self._rows[name] = None if text is None else rows_of(text)
            self._seen(len(self._rows))
        return self._rows[name]

    def reached(self, entry: str) -> dict[str, FileRows]:
        """The files of the program ``entry``, along its imports."""
        folder, waiting, found = posixpath.dirname(entry), [entry], {}
        seen = {entry}
        for name in waiting:  # it grows
            rows = self.rows(name)
            if rows is not None:
                found[name] = rows
                new = [other for other in self._imports(name, folder) if other not in seen]
                seen.update(new)
                waiting += new
        return found

    def _imported(self, name: str, folder: str) -> tuple[str, ...]:
        """The files that a file imports in a program that is started from a folder."""
        rows = self.rows(name)
        # Of the importer and of the program only the folders count, and for each import one of these.
        relative, absolute = (posixpath.dirname(name), ""), ("", folder)
        imports = rows.imports if rows is not None else ()
        places = (self._place(*(relative if each[0][0] == "." else absolute), *each) for each in imports)
        return tuple(dict.fromkeys(place for place in places if place is not None))

    def _placed(self, own: str, folder: str, module: str, attribute: str) -> Optional[str]:
        importer, program = posixpath.join(own, "x"), posixpath.join(folder, "x")
        found = place_of_import(importer, program, module, attribute, self.read)
        return None if found is None else found[0]

    @cached_property
    def callers(self) -> dict[str, list[str]]:
        """The files read so far that may call a function, by its bare name."""
        found: dict[str, list[str]] = {}
        for name, rows in self._rows.items():
            calls = _CALL.findall((self.read(name) or "") if rows is not None else "")
            for called in {called for defines, called in calls if not defines}:
                found.setdefault(called, []).append(name)
        return found

    def _given(self, name: str, given: Given) -> Values:
        """What the calls of a function in a file give one of its parameters."""
        index = parsed(self.read(name) or "", {given.function})
        if index is None:
            return ()
        calls = (call for call in index.calls if called_name(call) == given.function)
        arguments = (argument_of(call, given.name, given.place) for call in calls)
        return tuple(value for each in arguments for value in _values(index, each, given.depth))


_kept: dict[bytes, Optional[FileRows]] = {}
_KEPT = 10_000  # texts; a server runs for days


def rows_of(text: str) -> Optional[FileRows]:
    """What programs want to know of a file with a text; None for one that cannot be parsed."""
    key = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    if key not in _kept:
        if len(_kept) >= _KEPT:
            _kept.clear()
        _kept[key] = _rows(text)
    return _kept[key]


def imports_of(text: str) -> tuple[tuple[str, str], ...]:
    """The ``imports`` of a file with a text, without all that ``rows_of`` finds out beside them."""
    imports = imported_places(text)
    return tuple(imports) if imports is not None else (rows.imports if (rows := rows_of(text)) else ())


def _rows(text: str) -> Optional[FileRows]:
    imports, index = imported_places(text), None
    words, called = _called()
    if imports is None or (any(word in text for word in words) and called.search(text)):
        index = parsed(text, _WORDS | distributed_words())
        if index is None:
            return None
        imports = [(module, attribute) for _, _, module, attribute in imported_names(index.imports)]
    names = [f"{module}.{name}" if name else module for module, name in imports if module[0] != "."]
    ranks, named = _rank_variables()
    shown = any(name in text for name in ranks)
    variables = frozenset(match[2] for match in named.finditer(text)) if shown else frozenset()
    rows = FileRows(tuple(imports), tuple(names), ".backward(" in text, variables)
    if index is None:
        return rows
    multiplied = (name for name in table("multiplied") if name in text and _multiplies(index, name))
    return rows._replace(
        calls=tuple(_calls(index)),
        multiplies=frozenset(multiplied),
        options=tuple(replace(option, call=None) for option in options(index)),
        positionals=tuple(replace(option, call=None) for option in positionals(index)),
        subparsers="add_subparsers" in text,
    )


@cache
def _called() -> tuple[list[str], re.Pattern[str]]:
    """The words of calls and imports that count, and where one does: prose goes on with another word."""
    words = sorted(_WORDS | distributed_words(calls_only=True))
    return words, re.compile(rf"\b(?:{'|'.join(words)})\b(?=[ \t]*(?:[(),=;#\\\]\r\n]|as\b|$))")


@cache
def _rank_variables() -> tuple[list[str], re.Pattern[str]]:
    """The variables that say a rank, and where one stands as a string."""
    names = sorted({name for each in table("variables").values() for name in each}, key=len, reverse=True)
    return names, re.compile(rf"""(["'])({"|".join(names)})\1""")


def table(name: str) -> Any:
    """A table of ``reports/launcher/starts.yaml``."""
    return reports_yaml("launcher/starts.yaml")[name]


# -- calls --------------------------------------------------------------------


def _calls(index: ModuleIndex) -> Iterator[KnownCall]:
    for call in index.calls:
        name = index.qualified_name(call.func) or _of_context(index, call.func)
        joins, starts, is_process = (name in table(kind) for kind in ("joins", "starters", "processes"))
        if not name or not (joins or starts or is_process or listed("distributed_calls", name)):
            continue
        function = index.function_of(call)
        around = "" if function is None or function.name.startswith("__") else function.name
        known = KnownCall(name, around)
        if joins:
            values = {each: _values(index, argument_of(call, each)) for each in table("joined")}
            known = known._replace(values=values)
        count = None
        if starts:
            place, keyword = table("starters")[name]
            count = argument_of(call, keyword, place)
        elif is_process:
            loops = (up.iter for up in index.above(call) if isinstance(up, ast.For))
            ranges = (each for each in loops if isinstance(each, ast.Call) and called_name(each) == "range")
            count = next((each.args[:2][-1] for each in ranges), None)
            known = known._replace(loops=count is not None)
        if starts or known.loops:
            flags = tuple(_flags_above(index, call))
            known = known._replace(values={"count": _values(index, count)}, flags=flags)
        yield known


def _of_context(index: ModuleIndex, function: ast.expr) -> str:
    """The full name of ``mp.Process`` where ``mp`` is ``get_context(…)``; empty for anything else."""
    if not (isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name)):
        return ""
    made = any(called_name(value) == "get_context" for value in index.assigned(function.value))
    return f"multiprocessing.{function.attr}" if made else ""


def _flags_above(index: ModuleIndex, call: ast.Call) -> Iterator[str]:
    """The names of what has to be true for a call to be made."""
    for child, up in index.way_up(call):
        if isinstance(up, ast.If) and any(child is each for each in up.body):
            wanted = up.test.values if isinstance(up.test, ast.BoolOp) else [up.test]
            either = isinstance(up.test, ast.BoolOp) and isinstance(up.test.op, ast.Or)
            yield from map(bare_name, wanted[:1] if either else wanted)


def _multiplies(index: ModuleIndex, name: str) -> bool:
    """Whether a file has ``args.rank = args.rank * n + i``, or the same for ``global_rank``."""
    for statement in index.statements:
        target, value = only_target(statement), getattr(statement, "value", None)
        if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Mult):
            target, value = statement.target, ast.BinOp(statement.target, ast.Mult(), statement.value)
        same = isinstance(target, ast.Attribute) and target.attr == name
        of_all = isinstance(target, ast.Name) and name in target.id
        if (same or of_all) and isinstance(value, ast.BinOp):
            inside = (each for each in walk(value) if isinstance(each, ast.BinOp))
            products = (each for each in inside if isinstance(each.op, ast.Mult))
            for factor in (side for each in products for side in (each.left, each.right)):
                if bare_name(factor) == name and (same or isinstance(factor, ast.Attribute)):
                    return True
    return False


# -- values -------------------------------------------------------------------


def _values(index: ModuleIndex, node: ast.AST | None, depth: int = _DEPTH) -> Values:
    return tuple(dict.fromkeys(_sources(index, node, depth, set())))


def _sources(
    index: ModuleIndex, node: ast.AST | None, depth: int, seen: set[tuple[ast.AST, int]]
) -> Iterator[str | Given]:
    """Where a value may come from, through names, parameters and conditions."""
    if node is None or not depth or (node, depth) in seen:
        return
    seen.add((node, depth))
    if isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, ast.Call) and called_name(node) == "int" and node.args:
        yield from _sources(index, node.args[0], depth, seen)
    elif isinstance(node, (ast.IfExp, ast.BoolOp)):
        for part in [node.body, node.orelse] if isinstance(node, ast.IfExp) else node.values:
            yield from _sources(index, part, depth, seen)
    elif isinstance(node, ast.Name):
        for value in index.assigned(node):
            yield from _sources(index, value, depth - 1, seen)
        function = index.function_of(node)
        if function is not None and any(binding.kind == "param" for binding in index.bindings(node)):
            names = [one.arg for one in [*function.args.posonlyargs, *function.args.args]]
            place = names.index(node.id) if node.id in names else -1
            if depth > 1:
                yield Given(function.name, node.id, place, depth - 1)
