"""The DataLoader under what a loop runs over."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace

from migrator.convert.program import (
    Program,
    constant,
    dotted,
    last_name,
    method,
    parameters,
)
from migrator.names.tree import arguments_of
from migrator.project.distributed_use import listed

_DEPTH = 8

Guard = tuple[ast.expr, bool]  # a condition, and whether it holds
Ways = list[tuple[ast.expr, str]]  # iterables, each with the condition under which it is the one


@dataclass(frozen=True, eq=False)
class Loader:
    """A DataLoader call that makes a training loader. ``only``: where it makes others too, a condition."""

    call: ast.Call
    only: str = ""


def stripped(node: ast.expr) -> ast.expr:
    """What ``enumerate``, ``tqdm`` and the like are put around."""
    while isinstance(node, ast.Call) and node.args and listed("pass_items_on", last_name(node)):
        node = node.args[0]
    return node


def counts(iterable: ast.expr) -> bool:
    """Whether an iterable is a ``range``."""
    return last_name(stripped(iterable)) in ("range", "trange", "count")


def loader_calls(
    program: Program, node: ast.expr, known: Sequence[Guard] = (), depth: int = _DEPTH
) -> list[Loader]:
    """The DataLoader calls from which an iterable comes; none where that is not known.

    ``known``: conditions that hold where the iterable stands.
    """
    found: dict[ast.Call, Loader] = {}
    for origin in program.origins(stripped(node)) if depth else ():
        if isinstance(origin, ast.Call) and listed("loaders", program.name(origin)):
            found.setdefault(origin, Loader(origin))
            continue
        inner = passed_on(program, origin, known) or _taken(program, origin, known, depth)
        ways = [loader_calls(program, one, known, depth - 1) for one, _ in inner]
        if not ways or not all(ways):
            return []
        for (_, only), way in zip(inner, ways):
            found.update({one.call: replace(one, only=only or one.only) for one in way})
    return list(found.values())


def passed_on(program: Program, node: ast.expr, known: Sequence[Guard]) -> Ways:
    """The iterables whose items an expression gives, each with the condition under which it does."""
    inner = stripped(node)
    if inner is not node:
        return [(inner, "")]
    if isinstance(node, ast.Call):
        return [(one, "") for one in node.args] if dotted(node.func) == "zip" else _yielded(program, node)
    if isinstance(node, ast.IfExp):
        for test, holds in known:
            if ast.dump(test) == ast.dump(node.test):
                return [(node.body if holds else node.orelse, "")]
    if isinstance(node, ast.Subscript):
        key = _key(node, known)
        for table in program.origins(node.value) if key is not None else ():
            if isinstance(table, ast.Dict):
                keys = [constant(one) for one in table.keys]
                return [(table.values[keys.index(key)], "")] if key in keys else []
            if isinstance(table, ast.DictComp) and len(table.generators) == 1 and dotted(table.key):
                return [(table.value, f"{dotted(table.key)} == {_quoted(key)}")]
    return []


def _yielded(program: Program, call: ast.Call) -> Ways:
    """What a generator of the project is given, where its items are those that it yields."""
    function = program.function_of(call)
    for one in program.own_nodes(function, ast.Yield) if function else ():
        loops = (up for _, up in program.above(one) if isinstance(up, ast.For))
        drawn = next((loop.iter for loop in loops if dotted(loop.target) == dotted(one.value)), None)
        name = dotted(stripped(drawn)) if drawn else ""
        given = program.argument(call, function, name) if name in parameters(function) else None
        return [(given, "")] if given is not None else []
    return []


def _taken(program: Program, node: ast.expr, known: Sequence[Guard], depth: int) -> Ways:
    """The loaders that an object of the project is made with, where its items are drawn."""
    found = program.definition_of(node)
    if not isinstance(node, ast.Call) or found is None:
        return []
    if not any(method(found, name) for name in ("__iter__", "__next__", "next")):
        return []
    return [(one, "") for one in arguments_of(node) if loader_calls(program, one, known, depth - 1)]


def _key(node: ast.Subscript, known: Sequence[Guard]) -> object:
    """The key of a subscript, where it is a constant or is compared with one."""
    if isinstance(node.slice, ast.Constant):
        return node.slice.value
    for test, holds in known:
        if holds and isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq) and len(test.ops) == 1:
            value, name = test.comparators[0], dotted(node.slice)
            if name and dotted(test.left) == name and isinstance(value, ast.Constant):
                return value.value
    return None


def _quoted(key: object) -> str:
    plain = isinstance(key, str) and '"' not in key and repr(key)[1:-1] == key
    return f'"{key}"' if plain else repr(key)


def loader_name(program: Program, node: ast.expr, known: Sequence[Guard] = ()) -> str:
    """What the loader under an iterable is called there: ``loader``, ``self.loader``, or nothing plain."""
    node = stripped(node)
    value = program.only_value(program.scope_of(node), node.id) if isinstance(node, ast.Name) else None
    if value is not None:
        inner = stripped(value)
        if inner is not value or isinstance(inner, ast.Subscript):
            return inner.id if isinstance(inner, ast.Name) else loader_name(program, inner, known)
    if isinstance(node, ast.Subscript) and dotted(node.value):
        key = _key(node, known)
        return f"{dotted(node.value)}[{_quoted(key)}]" if key is not None else ""
    return dotted(node)
