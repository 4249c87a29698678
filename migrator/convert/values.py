"""What a program's names stand for: the functions that are called, and where values come from."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from migrator.convert.syntax import (
    FUNCTIONS,
    Definition,
    File,
    argument,
    bindings,
    class_of,
    dotted,
    function_of,
    on_self,
    parameters,
    yields,
)

if TYPE_CHECKING:
    from migrator.convert.program import Program


_DEPTH = 12


class UnknownError(Exception):
    """Where a value comes from is not known."""


def call_sites(program: Program, function: Any) -> list[tuple[File, ast.Call]]:
    """Where a function is called; of ``__init__``, where its class is."""
    sites = program.calls.get(id(function), [])
    owner = class_of(function)
    if owner is None or function.name != "__init__":
        return sites
    heirs = [one for _, one in program.families.get(id(owner), ()) if _method(one, "__init__") is None]
    return [site for one in (owner, *heirs) for site in program.calls.get(id(one), ())] + sites


def definition_of(
    program: Program, file: File, call: ast.Call, depth: int = _DEPTH
) -> tuple[File, Definition] | None:
    """The project's own function, class or method that a call calls."""
    func = call.func
    owner: Any
    if depth == 0:
        return None
    if id(call) in program.found:
        return program.found[id(call)]
    if isinstance(func, ast.Name):
        owner = class_of(function_of(call))
        if func.id == "cls" and owner is not None:
            return file, owner
        return _named(program, file, func.id, depth)
    if not isinstance(func, ast.Attribute):
        return None
    base = dotted(func.value)
    if base in file.imports:
        name, inside = file.imports[base]
        if not inside and name in program.files:
            return _named(program, program.files[name], func.attr, depth - 1)
    owner = None
    place = file
    if base in ("self", "cls") or _is_super(func.value):
        owner = class_of(function_of(call))
    else:
        try:
            for where, node in origins_of(program, file, func.value, depth - 1):
                found = definition_of(program, where, node, depth - 1) if isinstance(node, ast.Call) else None
                if found is None or not isinstance(found[1], ast.ClassDef) or owner not in (None, found[1]):
                    return None
                place, owner = found
        except UnknownError:
            return None
    if not isinstance(owner, ast.ClassDef):
        return None
    for where, one in program.family(place, owner)[_is_super(func.value) :]:
        method = _method(one, func.attr)
        if method is not None:
            return where, method
    return None


def _is_super(node: Any) -> bool:
    return isinstance(node, ast.Call) and dotted(node.func) == "super"


def _method(owner: ast.ClassDef, name: str) -> Any:
    return next((node for node in owner.body if isinstance(node, FUNCTIONS) and node.name == name), None)


def _named(program: Program, file: File, name: str, depth: int) -> tuple[File, Definition] | None:
    found = file.defined.get(name)
    if found:
        return (file, found[0]) if len(found) == 1 else None
    if name in file.imports and depth:
        other, inside = file.imports[name]
        if inside and other in program.files:
            return _named(program, program.files[other], inside, depth - 1)
    return None


def origins_of(
    program: Program, file: File, node: Any, depth: int = _DEPTH, place: int = -1
) -> Iterator[tuple[File, Any]]:
    """The expressions from which a value comes. Raises UnknownError where one of the ways is not known."""
    if depth == 0 or node is None:
        raise UnknownError
    if place >= 0 and isinstance(node, (ast.Tuple, ast.List)):
        if place >= len(node.elts) or any(isinstance(one, ast.Starred) for one in node.elts):
            raise UnknownError
        yield from origins_of(program, file, node.elts[place], depth - 1)
    elif isinstance(node, ast.Name):
        yield from _of_name(program, file, node, depth, place)
    elif isinstance(node, ast.Attribute) and dotted(node.value) == "self":
        owner = class_of(function_of(node))
        for where, one in program.family(file, owner) if owner else ():
            values = on_self(where, one, node.attr)
            if values:
                yield from _all(program, where, values, depth, place)
                return
        yield from _all(program, file, [], depth, place, node)
    elif isinstance(node, ast.Attribute):
        yield from _all(program, file, [], depth, place, node)
    elif isinstance(node, ast.Call):
        found = definition_of(program, file, node, depth - 1)
        if found is None or isinstance(found[1], ast.ClassDef) or yields(found[1]):
            if place >= 0:
                raise UnknownError
            yield file, node
            return
        where, function = found
        returned = [one for one in ast.walk(function) if isinstance(one, ast.Return)]
        values = [(one.value, place) for one in returned if function_of(one) is function]
        yield from _all(program, where, values, depth)
    elif place >= 0:
        raise UnknownError
    else:
        yield file, node


def _all(
    program: Program,
    file: File,
    values: list[tuple[Any, int]],
    depth: int,
    place: int = -1,
    node: Any = None,
) -> Iterator[tuple[File, Any]]:
    """The origins of all of some values; where there are none, of what ``elsewhere`` says of the node."""
    every = [(file, value, position) for value, position in values]
    if not every and node is not None:
        every = program.stored(file, node)
    if not every:
        raise UnknownError
    for where, value, position in every:
        if position >= 0 and place >= 0:
            raise UnknownError
        yield from origins_of(program, where, value, depth - 1, max(position, place))


def live_sites(program: Program, function: Any) -> list[tuple[File, ast.Call]]:
    """Where a function is called, without what further files do not use themselves."""
    sites = call_sites(program, function)
    return [site for site in sites if not _unused(program, *site)] or sites


def _unused(program: Program, file: File, call: ast.Call) -> bool:
    """Whether a call stands in a function of a further file that the program does not call."""
    function = function_of(call)
    return function is not None and file is not program.entry and not call_sites(program, function)


def _of_name(
    program: Program, file: File, node: ast.Name, depth: int, place: int
) -> Iterator[tuple[File, Any]]:
    function = function_of(node)
    values = bindings(file, function, node.id)
    if function is not None and node.id in parameters(function) and not values:
        sites = live_sites(program, function)
        if not sites:
            raise UnknownError
        for where, call in sites:
            yield from origins_of(program, where, argument(call, function, node.id), depth - 1, place)
        return
    if not values and function is not None:
        values = bindings(file, None, node.id)
    if not values and node.id in file.imports:
        name, inside = file.imports[node.id]
        if inside and name in program.files:
            other = program.files[name]
            there = bindings(other, None, inside)
            if there:
                yield from _all(program, other, there, depth, place)
                return
    yield from _all(program, file, values, depth, place, node)
