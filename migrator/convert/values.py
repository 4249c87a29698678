"""What a program's names stand for: the functions that are called, and where values come from."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from migrator.convert.program import Defined, File, Program
from migrator.convert.syntax import Value, dotted, method, parameters
from migrator.names.tree import Function

_DEPTH = 12


class UnknownError(Exception):
    """Where a value comes from is not known."""


def call_sites(program: Program, function: Any) -> list[tuple[File, ast.Call]]:
    """Where a function is called; of ``__init__``, where its class is."""
    sites = program.calls.get(id(function), [])
    owner = program.entry.class_of(function)
    if owner is None or function.name != "__init__":
        return sites
    heirs = [one for _, one in program.families.get(id(owner), ()) if method(one, "__init__") is None]
    return [site for one in (owner, *heirs) for site in program.calls.get(id(one), ())] + sites


def live_sites(program: Program, function: Function | None) -> list[tuple[File, ast.Call]]:
    """Where a function is called, without what further files do not use themselves."""
    sites = call_sites(program, function)
    return [site for site in sites if not _unused(program, *site)] or sites


def _unused(program: Program, file: File, call: ast.Call) -> bool:
    """Whether a call stands in a function of a further file that the program does not call."""
    function = file.function_of(call)
    return function is not None and file is not program.entry and not call_sites(program, function)


def definition_of(program: Program, file: File, call: Any, depth: int = _DEPTH) -> Defined | None:
    """The project's own function, class or method that a call calls; None for what is no call."""
    if not isinstance(call, ast.Call) or depth == 0:
        return None
    func = call.func
    if id(call) in program.found:
        return program.found[id(call)]
    if isinstance(func, ast.Name):
        around = file.class_of(file.function_of(call))
        return (file, around) if func.id == "cls" and around else _named(program, file, func.id, depth)
    if not isinstance(func, ast.Attribute):
        return None
    base = dotted(func.value)
    if base in file.imports:
        name, inside = file.imports[base]
        if not inside and name in program.files:
            return _named(program, program.files[name], func.attr, depth - 1)
    upwards = isinstance(func.value, ast.Call) and dotted(func.value.func) == "super"
    if base in ("self", "cls") or upwards:
        owner = file.class_of(file.function_of(call))
        owners = [(file, owner)] if owner else []
    else:
        owners = classes_of(program, file, func.value, depth)
    family = program.family(*owners[0])[upwards:] if owners else ()
    found = [(where, own) for where, one in family if (own := method(one, func.attr)) is not None]
    return next((one for one in found if not _is_left_open(one[1])), found[0] if found else None)


def _is_left_open(function: Function) -> bool:
    """Whether a method is there to be written by the classes that inherit it."""
    last = function.body[-1]
    raised = ast.dump(last.exc) if isinstance(last, ast.Raise) and last.exc is not None else ""
    return "NotImplementedError" in raised or any(
        "abstract" in dotted(one) for one in function.decorator_list
    )


def classes_of(
    program: Program, file: File, node: ast.expr, depth: int = _DEPTH
) -> list[tuple[File, ast.ClassDef]]:
    """The class of which an object is, once for each way to it; none where that is not known."""
    found: list[tuple[File, ast.ClassDef]] = []
    try:
        for where, origin in _origins(program, file, node, depth - 1):
            made = definition_of(program, where, origin, depth - 1)
            if (
                made is None
                or not isinstance(made[1], ast.ClassDef)
                or (found and found[0][1] is not made[1])
            ):
                return []
            found.append((made[0], made[1]))
    except UnknownError:
        return []
    return found[::-1]


def _named(program: Program, file: File, name: str, depth: int) -> Defined | None:
    found = file.defined.get(name)
    if found:
        return (file, found[0]) if len(found) == 1 else None
    if name in file.imports and depth:
        other, inside = file.imports[name]
        if inside and other in program.files:
            return _named(program, program.files[other], inside, depth - 1)
    return None


def origins(program: Program, file: File, node: Any) -> list[tuple[File, Any]]:
    """The expressions from which a value comes, through names, parameters, attributes and returns.

    Empty where one of the ways to it is not known.
    """
    try:
        return list(_origins(program, file, node))
    except UnknownError:
        return []


def _origins(
    program: Program, file: File, node: Any, depth: int = _DEPTH, place: int = -1
) -> Iterator[tuple[File, Any]]:
    """The same. Raises UnknownError where one of the ways is not known."""
    if depth == 0 or node is None:
        raise UnknownError
    if place >= 0 and isinstance(node, (ast.Tuple, ast.List)):
        if place >= len(node.elts) or any(isinstance(one, ast.Starred) for one in node.elts):
            raise UnknownError
        yield from _origins(program, file, node.elts[place], depth - 1)
    elif isinstance(node, ast.Name):
        yield from _of_name(program, file, node, depth, place)
    elif isinstance(node, ast.Attribute):
        owner = file.class_of(file.function_of(node)) if dotted(node.value) == "self" else None
        for where, one in program.family(file, owner) if owner else ():
            values = where.on_self(one, node.attr)
            if values:
                yield from _of_all(program, where, values, depth, place)
                return
        yield from _of_all(program, file, [], depth, place, node)
    elif isinstance(node, ast.Call):
        found = definition_of(program, file, node, depth - 1)
        if found is None or isinstance(found[1], ast.ClassDef) or file.yields(found[1]):
            if place >= 0:
                raise UnknownError
            yield file, node
            return
        where, function = found
        returned = [one for one in ast.walk(function) if isinstance(one, ast.Return)]
        values = [(one.value, place) for one in returned if file.function_of(one) is function]
        yield from _of_all(program, where, values, depth)
    elif place >= 0:
        raise UnknownError
    else:
        yield file, node


def _of_name(
    program: Program, file: File, node: ast.Name, depth: int, place: int
) -> Iterator[tuple[File, Any]]:
    function = file.function_of(node)
    values = file.bindings(function, node.id)
    if function is not None and node.id in parameters(function) and not values:
        sites = live_sites(program, function)
        if not sites:
            raise UnknownError
        for where, call in sites:
            yield from _origins(program, where, file.argument(call, function, node.id), depth - 1, place)
        return
    if not values and function is not None:
        values = file.bindings(None, node.id)
    if not values and node.id in file.imports:
        name, inside = file.imports[node.id]
        there = program.files[name].bindings(None, inside) if inside and name in program.files else []
        if there:
            yield from _of_all(program, program.files[name], there, depth, place)
            return
    yield from _of_all(program, file, values, depth, place, node)


def _of_all(
    program: Program, file: File, values: list[Value], depth: int, place: int = -1, node: Any = None
) -> Iterator[tuple[File, Any]]:
    """The origins of all of some values; where there are none, of what ``elsewhere`` says of the node."""
    every = [(file, *value) for value in values]
    if not every and node is not None:
        every = list(_stored_elsewhere(program, file, node))
    if not every:
        raise UnknownError
    for where, value, position in every:
        if position >= 0 and place >= 0:
            raise UnknownError
        yield from _origins(program, where, value, depth - 1, max(position, place))


def _stored_elsewhere(program: Program, file: File, node: Any) -> Iterator[tuple[File, Any, int]]:
    """The values that something named has by ``elsewhere``, each with its place in a tuple, or -1."""
    places = program.elsewhere.places(file.name, file.index, node) if program.elsewhere else []
    for name, line, column in places:
        for one in program.files[name].nodes(ast.Name, ast.Attribute) if name in program.files else ():
            at = (
                (one.end_col_offset or 0) - len(one.attr)
                if isinstance(one, ast.Attribute)
                else one.col_offset
            )
            if (one.lineno, at) == (line, column) and one is not node:
                yield (program.files[name], *file.stored_value(one))
