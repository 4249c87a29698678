"""Which calls of a function train: those for which the conditions around ``backward()`` can hold."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

from migrator.convert.program import File, Program
from migrator.convert.syntax import default, method_name, parameters, walk_all
from migrator.convert.values import call_sites
from migrator.names.tree import Function, hands_on

Guard = tuple[Any, bool]
_UNKNOWN = object()
_SOMETHING = object()  # what a call gives that is no constant


def guards(file: File, node: ast.AST, top: Any) -> list[Guard]:
    """The conditions between a node and one around it, each with the value that lets the node be reached.

    A condition both of whose branches call ``backward`` is none.
    """
    found: list[Guard] = []
    for child, up in file.above(node):
        if child is top:
            break
        if isinstance(up, ast.If) and child is not up.test:
            then = child in up.body
            if not any(
                getattr(one, "attr", "") == "backward" for one in walk_all(up.orelse if then else up.body)
            ):
                found.append((up.test, then))
    return found


def backward_calls(program: Program) -> list[tuple[File, ast.Call]]:
    """Where a program calls ``backward()``."""
    return [(file, call) for file, call in program.nodes(ast.Call) if method_name(call) == "backward"]


def training_view(program: Program) -> Program:
    """The program without the calls that never reach ``backward()``, as ``run(loader, train=False)``."""
    reaching = backward_calls(program)
    while True:
        by_function: dict[int, tuple[Any, list[tuple[File, Any]]]] = {}
        for file, node in reaching:
            function = file.function_of(node)
            if function is not None:
                by_function.setdefault(id(function), (function, []))[1].append((file, node))
        quiet: set[int] = set()
        doubtful: set[int] = set()
        more = []
        for function, nodes in by_function.values():
            for site in call_sites(program, function):
                reached = [_reached(file, node, function, site[1]) for file, node in nodes]
                if all(one is False for one in reached):
                    quiet.add(id(site[1]))
                elif all(one is not True for one in reached):
                    doubtful.add(id(function))
                if id(site[1]) not in quiet and all(site[1] is not one for _, one in reaching):
                    more.append(site)
        if not more:
            break
        reaching += more
    calls = {key: [one for one in sites if id(one[1]) not in quiet] for key, sites in program.calls.items()}
    mixed = {key for key, sites in calls.items() if len(sites) != len(program.calls[key])}
    return replace(program, calls=calls, mixed=frozenset(mixed | doubtful))


def _reached(file: File, node: ast.AST, function: Function | None, site: ast.Call) -> bool | None:
    """Whether a call of a function reaches a node of it; None where its arguments do not say."""
    result: bool | None = True
    for test, wanted in guards(file, node, function):
        if not _asks_parameter(file, test, function):
            continue
        value = _value(file, test, function, site, 6)
        if value in (_UNKNOWN, _SOMETHING):
            result = None
        elif bool(value) is not wanted:
            return False
    return result


def _asks_parameter(file: File, test: ast.expr, function: Function | None) -> bool:
    names = {node.id for node in ast.walk(test) if isinstance(node, ast.Name)}
    for name in list(names):
        for value, _ in file.bindings(function, name):
            names |= {node.id for node in ast.walk(value or test) if isinstance(node, ast.Name)}
    return bool(names & {*parameters(function)} - {"self"})


def _value(file: File, node: Any, function: Any, site: ast.Call, depth: int) -> Any:
    """The value of an expression where a call says it."""
    if depth == 0:
        return _UNKNOWN
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        bound = file.only_value(function, node.id)
        if bound is not None:
            return _value(file, bound, function, site, depth - 1)
        if file.bindings(function, node.id) or node.id not in parameters(function):
            return _UNKNOWN
        given = file.argument(site, function, node.id)
        if given is None and not hands_on(site):
            given = default(function, node.id)
        return given.value if isinstance(given, ast.Constant) else _UNKNOWN if given is None else _SOMETHING
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        value = _value(file, node.operand, function, site, depth - 1)
        return _UNKNOWN if value in (_UNKNOWN, _SOMETHING) else not value
    if isinstance(node, ast.BoolOp):
        values = [_value(file, one, function, site, depth - 1) for one in node.values]
        decides = isinstance(node.op, ast.Or)
        known = [bool(one) for one in values if one not in (_UNKNOWN, _SOMETHING)]
        if decides in known:
            return decides
        return not decides if len(known) == len(values) else _UNKNOWN
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return _compared(file, node, function, site, depth)
    return _UNKNOWN


def _compared(file: File, node: ast.Compare, function: Function | None, site: ast.Call, depth: int) -> Any:
    left = _value(file, node.left, function, site, depth - 1)
    right = _value(file, node.comparators[0], function, site, depth - 1)
    if isinstance(node.ops[0], (ast.Is, ast.IsNot)) and right is None and left is not _UNKNOWN:
        return (left is None) is isinstance(node.ops[0], ast.Is)
    if _UNKNOWN in (left, right) or _SOMETHING in (left, right):
        return _UNKNOWN
    if isinstance(node.ops[0], ast.Eq):
        return left == right
    return left != right if isinstance(node.ops[0], ast.NotEq) else _UNKNOWN
