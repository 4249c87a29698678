"""The DataLoader under what a loop runs over."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from migrator.convert.distributed.find.conditions import Guard
from migrator.convert.program import File, Program
from migrator.convert.syntax import dotted, last_name, method, parameters
from migrator.convert.values import definition_of, origins
from migrator.names.tree import arguments_of
from migrator.project.distributed_use import listed

_DEPTH = 8

Ways = list[tuple[File, Any, str]]  # iterables, each with the condition under which it is the one


@dataclass(frozen=True, eq=False)
class Loader:
    """A DataLoader call that makes a training loader. ``only``: where it makes others too, a condition."""

    file: File
    call: ast.Call
    only: str = ""


def stripped(node: Any) -> Any:
    """What ``enumerate``, ``tqdm`` and the like are put around."""
    while isinstance(node, ast.Call) and node.args and listed("pass_items_on", last_name(node)):
        node = node.args[0]
    return node


def loader_calls(
    program: Program, file: File, node: ast.AST, known: Sequence[Guard] = (), depth: int = _DEPTH
) -> list[Loader]:
    """The DataLoader calls from which an iterable comes; none where that is not known.

    ``known``: conditions that hold where the iterable stands.
    """
    found: dict[int, Loader] = {}
    for where, origin in origins(program, file, stripped(node)) if depth else ():
        if isinstance(origin, ast.Call) and listed("loaders", where.called(origin)):
            found.setdefault(id(origin), Loader(where, origin))
            continue
        inner = passed_on(program, where, origin, known)
        inner = inner or _taken(program, where, origin, known, depth)
        ways = [loader_calls(program, place, one, known, depth - 1) for place, one, _ in inner]
        if not ways or not all(ways):
            return []
        for (_, _, only), way in zip(inner, ways):
            found.update({id(one.call): replace(one, only=only or one.only) for one in way})
    return list(found.values())


def passed_on(program: Program, file: File, node: ast.AST, known: Sequence[Guard]) -> Ways:
    """The iterables whose items an expression gives, each with the condition under which it does."""
    inner = stripped(node)
    if inner is not node:
        return [(file, inner, "")]
    if isinstance(node, ast.Call) and dotted(node.func) == "zip":
        return [(file, one, "") for one in node.args]
    if isinstance(node, ast.Call):
        found = definition_of(program, file, node)
        for one in file.yields(found[1]) if found else ():
            loops = (up for _, up in file.above(one) if isinstance(up, ast.For))
            drawn = (loop.iter for loop in loops if dotted(loop.target) == dotted(one.value))
            name = dotted(stripped(next(drawn, None)))
            given = file.argument(node, found[1], name) if found and name in parameters(found[1]) else None
            return [(file, given, "")] if given is not None else []
    if isinstance(node, ast.IfExp):
        for test, holds in known:
            if ast.dump(test) == ast.dump(node.test):
                return [(file, node.body if holds else node.orelse, "")]
    if isinstance(node, ast.Subscript):
        key = _key(node, known)
        for where, table in origins(program, file, node.value) if key is not None else ():
            if isinstance(table, ast.Dict):
                keys = [getattr(one, "value", None) for one in table.keys]
                return [(where, table.values[keys.index(key)], "")] if key in keys else []
            if isinstance(table, ast.DictComp) and len(table.generators) == 1 and dotted(table.key):
                return [(where, table.value, f"{dotted(table.key)} == {_quoted(key)}")]
    return []


def _taken(program: Program, file: File, node: Any, known: Sequence[Guard], depth: int) -> Ways:
    """The loaders that an object of the project is made with, where its items are drawn."""
    found = definition_of(program, file, node)
    if found is None or not any(method(found[1], name) for name in ("__iter__", "__next__", "next")):
        return []
    taken = (one for one in arguments_of(node) if loader_calls(program, file, one, known, depth - 1))
    return [(file, one, "") for one in taken]


def _key(node: ast.Subscript, known: Sequence[Guard]) -> Any:
    """The key of a subscript, where it is a constant or is compared with one."""
    if isinstance(node.slice, ast.Constant):
        return node.slice.value
    for test, holds in known:
        if holds and isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq) and len(test.ops) == 1:
            value, name = test.comparators[0], dotted(node.slice)
            if name and dotted(test.left) == name and isinstance(value, ast.Constant):
                return value.value
    return None


def _quoted(key: Any) -> str:
    plain = isinstance(key, str) and '"' not in key and repr(key)[1:-1] == key
    return f'"{key}"' if plain else repr(key)


def loader_name(file: File, node: ast.AST, known: Sequence[Guard] = ()) -> str:
    """What the loader under an iterable is called there: ``loader``, ``self.loader``, or nothing plain."""
    node = stripped(node)
    if isinstance(node, ast.Name):
        value = file.only_value(file.function_of(node), node.id)
        inner = stripped(value)
        if inner is not value or isinstance(inner, ast.Subscript):
            return loader_name(file, inner, known) if not isinstance(inner, ast.Name) else inner.id
    if isinstance(node, ast.Subscript) and dotted(node.value):
        key = _key(node, known)
        return f"{dotted(node.value)}[{_quoted(key)}]" if key is not None else ""
    return dotted(node)


def counts(call: Any) -> bool:
    """Whether an iterable is a ``range``."""
    return last_name(stripped(call)) in ("range", "trange", "count")
