"""How the ranks of a program come to be: a launcher starts them, the program does, or it knows of none."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Optional

from migrator.data_folders import reports_yaml
from migrator.names.index import ModuleIndex
from migrator.names.tree import argument_of, bare_name, called_name, only_target, walk
from migrator.names.tree import imported as imported_in_full
from migrator.project.distributed_use import distributed_words, imports_distributed, listed
from migrator.project.imports import Read, files_of
from migrator.project.parser_options import Option, options

_WORDS = frozenset({"spawn", "start_processes", "Process", "launch", "add_argument", "option"})
_DEPTH = 4


@dataclass(frozen=True)
class StartWay:
    """Who starts a program's ranks.

    With ``none`` it shows no use of ranks, ``unseen``: its training is in a package of which nothing is read.

    ``options`` are those that the program has to get from its launcher, with marks of
    ``reports/launcher/starts.yaml`` for their values. ``variables``: the launcher whose variables it reads.
    """

    ranks: Literal["launcher", "program", "none", "unseen"]
    options: tuple[str, ...] = ()
    variables: str = ""


@dataclass(frozen=True)
class _Program:
    """The files of a program by name, the options of its parsers by the names of their values."""

    files: Mapping[str, ModuleIndex]
    options: dict[str, Option] = field(default_factory=dict)

    def calls(self) -> Iterator[tuple[ModuleIndex, ast.Call, str]]:
        """The calls that may be of a known API, each with its full name."""
        for index in self.files.values():
            for call in index.calls:
                name = index.qualified_name(call.func) or _of_context(index, call.func)
                if name:
                    yield index, call, name


def _of_context(index: ModuleIndex, function: ast.expr) -> str:
    """The full name of ``mp.Process`` where ``mp`` is ``get_context(…)``; empty for anything else."""
    made = isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name)
    values = index.assigned(function.value) if made else []  # type: ignore[attr-defined]  # it is an attribute
    from_context = any(called_name(value) == "get_context" for value in values)
    return f"multiprocessing.{bare_name(function)}" if from_context else ""


def start_ways(entries: Iterable[str], read: Read, mended: bool) -> dict[str, StartWay]:
    """How each of some scripts is started; ``read`` gives a file's text, None where there is none.

    ``mended``: the parsers' defaults of ``--local_rank`` come to read the environment. A script that cannot
    be parsed is left out.
    """
    known: dict[str, Optional[ModuleIndex]] = {}
    found = {}
    for entry in entries:
        program = _Program(dict(files_of(entry, read, known, _WORDS | distributed_words())))
        if entry in program.files:
            for index in program.files.values():
                program.options.update(_options(index))
            found[entry] = _way(program, mended)
    return found


def _way(program: _Program, mended: bool) -> StartWay:
    joins = [
        (index, call)
        for index, call, name in program.calls()
        if name in _table("joins") and _is_used(program, index, call)
    ]
    starter = _starter(program, bool(joins))
    if starter is not None:
        return StartWay("program", tuple(_own_options(program, *starter)))
    uses = any(
        listed("distributed_calls", name) and _is_used(program, index, call)
        for index, call, name in program.calls()
    )
    of_library = [
        words
        for index in program.files.values()
        for imported in index.imports
        for words in map(_table("libraries").get, imported_in_full(imported))
        if words
    ]
    if not uses and not of_library and not any(map(imports_distributed, program.files.values())):
        trains = any(".backward(" in index.text for index in program.files.values())
        return StartWay("none" if trains else "unseen")
    read = [name for name, variables in _table("variables").items() if _reads(program, variables)]
    options = [*(word for words in of_library for word in words), *_rank_options(program, joins, mended)]
    return StartWay("launcher", tuple(options), read[0] if read and "torchrun" not in read else "")


def _is_used(program: _Program, index: ModuleIndex, node: ast.AST) -> bool:
    """Whether something is at the margin of a file, or in a function whose name stands elsewhere, too."""
    function = index.function_of(node)
    if function is None or function.name.startswith("__"):
        return True
    word = re.compile(rf"\b{re.escape(function.name)}\b")
    return sum(len(word.findall(each.text)) for each in program.files.values()) > 1


def _reads(program: _Program, variables: Iterable[str]) -> bool:
    """Whether a program holds the name of one of some variables as a string."""
    pattern = re.compile(rf"""(["'])(?:{"|".join(variables)})\1""")
    return any(pattern.search(index.text) for index in program.files.values())


# -- a program that starts its ranks ----------------------------------------


def _starter(program: _Program, joins: bool) -> tuple[ModuleIndex, ast.Call, ast.expr | None] | None:
    """The call that starts a program's ranks, and how many it starts."""
    for index, call, name in program.calls():
        known = name in _table("starters") or name in _table("processes")
        if not known or not _is_used(program, index, call):
            continue
        if name in _table("starters") and (joins or not name.startswith("torch.")):
            place, keyword = _table("starters")[name]
            return index, call, argument_of(call, keyword, place)
        if name in _table("processes") and joins:
            loops = (up for up in index.above(call) if isinstance(up, ast.For))
            loop = next((up for up in loops if called_name(up.iter) == "range"), None)
            if loop is not None and isinstance(loop.iter, ast.Call):
                return index, call, loop.iter.args[1 if len(loop.iter.args) > 1 else 0]
    return None


def _own_options(
    program: _Program, index: ModuleIndex, call: ast.Call, count: ast.expr | None
) -> Iterator[str]:
    given: set[str] = set()
    for dest, option in _flags_above(program, index, call):
        given.add(dest)
        yield option.name
    dest = _option_in(program, index, count, _DEPTH)
    if dest and dest not in given:
        given.add(dest)
        yield from (program.options[dest].name, "%NPROC%")
    multiplied = {name: mark for name, mark in _table("multiplied").items() if _multiplies(program, name)}
    for name, mark in (_table("own") | multiplied).items():
        own = program.options.get(name)
        if own is not None and name not in given and own.default != "env://":
            yield own.name
            if not own.flag:
                yield mark


def _flags_above(program: _Program, index: ModuleIndex, call: ast.Call) -> Iterator[tuple[str, Option]]:
    """The options without a value that have to be given for a call to be made."""
    for child, up in index.way_up(call):
        if isinstance(up, ast.If) and any(child is each for each in up.body):
            wanted = up.test.values if isinstance(up.test, ast.BoolOp) else [up.test]
            either = isinstance(up.test, ast.BoolOp) and isinstance(up.test.op, ast.Or)
            for test in wanted[:1] if either else wanted:
                name = bare_name(test)
                if name in program.options and program.options[name].flag:
                    yield name, program.options[name]


def _option_in(program: _Program, index: ModuleIndex, node: ast.AST | None, depth: int) -> str:
    """The option that gives a value, through names, parameters and conditions; empty without."""
    if node is None or not depth:
        return ""
    if isinstance(node, ast.Attribute):
        return node.attr if node.attr in program.options else ""
    if isinstance(node, ast.Call) and called_name(node) == "int" and node.args:
        return _option_in(program, index, node.args[0], depth)
    if isinstance(node, (ast.IfExp, ast.BoolOp)):
        parts = [node.body, node.orelse] if isinstance(node, ast.IfExp) else node.values
        return next(filter(None, (_option_in(program, index, part, depth) for part in parts)), "")
    if not isinstance(node, ast.Name):
        return ""
    for value in index.assigned(node):
        found = _option_in(program, index, value, depth - 1)
        if found:
            return found
    function = index.function_of(node)
    if function is None or all(binding.kind != "param" for binding in index.bindings(node)):
        return ""
    names = [one.arg for one in [*function.args.posonlyargs, *function.args.args]]
    place = names.index(node.id) if node.id in names else -1
    for other in program.files.values():
        for call in walk(other.tree):
            if isinstance(call, ast.Call) and called_name(call) == function.name:
                found = _option_in(program, other, argument_of(call, node.id, place), depth - 1)
                if found:
                    return found
    return ""


def _multiplies(program: _Program, name: str) -> bool:
    """Whether a program has ``args.rank = args.rank * n + i``, or the same for ``global_rank``."""
    for index in program.files.values():
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


# -- a program whose ranks a launcher starts ----------------------------------


def _rank_options(
    program: _Program, joins: list[tuple[ModuleIndex, ast.Call]], mended: bool
) -> Iterator[str]:
    launcher, kind = program.options.get("launcher"), _table("launcher")
    if launcher is not None and kind in launcher.choices and launcher.default != kind:
        yield from (launcher.name, kind)
    own = program.options.get("local_rank")
    if own is not None and not (mended and own.argparse and type(own.default) is int):
        if not _reads(program, ["LOCAL_RANK"]):
            yield from (own.name, _table("local_rank"))
    if _reads(program, ["RANK"]):
        return
    given: set[str] = set()
    for index, call in joins:
        for keyword, mark in _table("joined").items():
            dest = _option_in(program, index, argument_of(call, keyword), _DEPTH)
            option = program.options.get(dest)
            if option is not None and dest not in given and option.default != "env://":
                given.add(dest)
                yield from (option.name, mark)


# -- options ----------------------------------------------------------------


def _options(index: ModuleIndex) -> Iterator[tuple[str, Option]]:
    """The options that a file's parsers take, by the names of their values."""
    for option in options(index):
        yield option.dest, option
    for imported in index.imports:
        for full in imported_in_full(imported):
            for name in _table("parsers").get(full, ()):
                dest = name.lstrip("-").replace("-", "_")
                yield dest, Option(name, (name,), dest)


def _table(name: str) -> Any:
    return reports_yaml("launcher/starts.yaml")[name]
