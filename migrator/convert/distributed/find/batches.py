"""Batches that a program makes itself: by a generator or an object of its own, by a counter, or at random."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from migrator.convert.distributed.find.flow import Name, Nodes, fed, holds, key
from migrator.convert.distributed.find.iterables import counts, stripped
from migrator.convert.program import File, Program
from migrator.convert.syntax import (
    Loop,
    dotted,
    ids,
    is_stored,
    last_name,
    method_name,
    parameters,
    stored_below,
    walk_all,
)
from migrator.convert.values import call_sites, definition_of, origins
from migrator.names.statements import LEAVING
from migrator.names.tree import arguments_of
from migrator.project.distributed_use import listed

_DEPTH = 6
_SHOWS = "print info debug log write set_description set_postfix append format time item".split()


@dataclass(frozen=True, eq=False)
class Drawn:
    """An expression that gives all batches one by one, or, where it is ``one``, the next each time.

    ``seeds`` and ``names``: the expressions and the names that hold what comes of it.
    """

    file: File
    node: Any
    one: bool
    seeds: frozenset[int]
    names: frozenset[Name]

    def feeds(self, node: ast.AST) -> bool:
        """Whether an expression holds what comes of it."""
        return holds(self.file, node, self.seeds, self.names)


def drawn_batches(
    program: Program, file: File, loop: Loop, functions: Sequence[Any], inside: Nodes, loss: Any
) -> list[Drawn]:
    """What gives a loop its batches, where it ends in the ``loss`` and the loop takes the optimizer's steps.

    ``functions``: those on the way from the loop to ``backward()``; ``inside``: what runs in the loop with
    gradients.
    """
    if not any(is_step(node) for _, node in inside):
        return []
    if isinstance(loop, ast.For):
        whole = _of_loop(program, file, loop, inside)
        if whole is not None and whole.feeds(loss):
            return [whole]
    own = ids(loop) if not functions else ids(loop, *functions)
    found = []
    for where, node in inside:
        if id(node) in own and isinstance(node, ast.Call) and _may_turn(where, node, loop, functions):
            if _draws(program, where, node) and not _draws_inside(program, where, node):
                seeds = frozenset({id(node)})
                one = Drawn(where, node, True, seeds, fed(program, inside, seeds, ()))
                found += [one] if one.feeds(loss) else []
    return found


def is_step(node: Any) -> bool:
    """Whether a node steps an optimizer."""
    return method_name(node) == "step" and "sched" not in dotted(node.func.value).lower()


def fed_by(
    program: Program, file: File, loop: Loop, drawn: Sequence[Drawn], inside: Nodes
) -> Callable[[ast.AST], bool]:
    """Tells whether an expression holds what comes of the batches of a loop."""
    names: set[Name] = {name for one in drawn for name in one.names}
    seeds = frozenset(seed for one in drawn for seed in one.seeds)
    if isinstance(loop, ast.For) and not counts(loop.iter):
        names |= _items(file, loop)
    else:
        seeds |= {
            id(node) for _, node in inside if isinstance(node, ast.Call) and dotted(node.func) == "next"
        }
    known = fed(program, inside, seeds, names)
    return lambda node: holds(file, node, seeds, known)


def is_of(program: Program, drawn: Drawn, node: Any) -> bool:
    """Whether an expression names what gives a loop all of its batches, there or where it comes from."""
    given, depth = drawn.node, _DEPTH
    while dotted(given) and depth:
        if key(drawn.file, given) == key(drawn.file, node):
            return True
        function = drawn.file.function_of(given)
        is_parameter = function is not None and dotted(given) in parameters(function)
        sites = call_sites(program, function) if is_parameter else []
        if len(sites) != 1:
            return False
        given, depth = drawn.file.argument(sites[0][1], function, dotted(given)), depth - 1
    return False


def carried(file: File, loop: Loop, calls: Nodes) -> Any:
    """What goes from one batch to the next: an argument of the model that its result sets anew; or None."""
    targets = _items(file, loop) if isinstance(loop, ast.For) else set()
    for where, node in calls:
        statement: Any = where.index.statement_of(node)
        call = next(up for _, up in where.above(node) if isinstance(up, ast.Call))
        function = where.function_of(node)
        own = function is file.function_of(loop)
        for name in _read(call) & set(map(dotted, stored_below(statement))):
            if not own and not name.startswith("self."):
                continue  # each call of a function begins anew
            stores = where.stores.get((function, name), [])
            before = [where.index.statement_of(one) for one in stores if one.lineno < statement.lineno]
            fresh = (id(one) in ids(loop) or not own for one in before if name not in _read(one))
            if not any(fresh) and not any(key(where, one) in targets for one in stores):
                return node
    return None


def _read(node: ast.AST) -> set[str]:
    return {dotted(one) for one in ast.walk(node) if not is_stored(one)} - {""}


def _of_loop(program: Program, file: File, loop: ast.For, inside: Nodes) -> Drawn | None:
    """What a loop runs over, where that gives batches or the places of batches."""
    inner = stripped(loop.iter)
    names = _items(file, loop)
    if not counts(loop.iter):
        if not _gives_batches(program, file, inner):
            return None
        return Drawn(file, inner, False, frozenset(), fed(program, inside, frozenset(), names))
    places = fed(program, inside, frozenset(), names)
    taken = {
        id(node): file.function_of(node)
        for _, node in inside
        if isinstance(node, ast.Subscript) and holds(file, node.slice, frozenset(), places)
    }
    makers = [
        id(node)
        for where, node in inside
        if isinstance(node, ast.Call)
        and (found := definition_of(program, where, node))
        and any(found[1] is one for one in taken.values())
    ]
    for _, node in inside:
        if isinstance(node, ast.If) and holds(file, node.test, frozenset(), places) and not _only_shows(node):
            return None  # the ranks would not agree
    seeds = frozenset({*taken, *makers})
    return Drawn(file, inner, False, seeds, fed(program, inside, seeds, ()))


def _items(file: File, loop: ast.For) -> set[Name]:
    """The names of what a loop runs over, without what ``enumerate`` counts."""
    target: ast.expr = loop.target
    if "enumerate" in map(last_name, ast.walk(loop.iter)) and isinstance(target, ast.Tuple):
        target = target.elts[-1]
    return {key(file, one) for one in stored_below(target)}


def _only_shows(node: ast.If) -> bool:
    calls = [one for one in ast.walk(node) if isinstance(one, ast.Call)]
    leaves = (isinstance(one, LEAVING) for one in ast.walk(node))
    return all((method_name(one) or last_name(one)) in _SHOWS for one in calls) and not any(leaves)


def _gives_batches(program: Program, file: File, node: Any, depth: int = _DEPTH) -> bool:
    """Whether all that an expression may be is iterated in the same order on every rank."""
    found = origins(program, file, node) if depth else []
    return bool(found) and all(_is_iterated(program, where, one, depth) for where, one in found)


def _is_iterated(program: Program, file: File, node: Any, depth: int) -> bool:
    if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.List, ast.Tuple)):
        return True
    if isinstance(node, ast.Subscript):
        return _gives_batches(program, file, node.value, depth - 1)
    if not isinstance(node, ast.Call) or counts(node):
        return False
    if definition_of(program, file, node) is not None:
        return True
    name = file.called(node) or dotted(node.func)
    if listed("loaders", name):
        return False
    if name in ("zip", "list", "iter", "enumerate", "reversed", "sorted") and node.args:
        return all(_gives_batches(program, file, one, depth - 1) for one in node.args)
    return name.partition(".")[0] in ("torch", "numpy", "random") or method_name(node) in ("split", "chunk")


def _may_turn(file: File, call: ast.Call, loop: Loop, functions: Sequence[Any]) -> bool:
    """Whether what a call gives may differ between ranks: no condition asks for it."""
    for child, up in file.above(call):
        if isinstance(up, (ast.If, ast.While, ast.IfExp)) and child is up.test:
            return False
        if up is loop or any(up is one for one in functions):
            return up is not loop or child in loop.body
    return False


def _draws(program: Program, file: File, call: Any, depth: int = _DEPTH, seen: tuple[int, ...] = ()) -> bool:
    """Whether each call gives something else: at random, the next of something, or by an object's state."""
    if not isinstance(call, ast.Call) or not depth:
        return False
    name = file.called(call) or dotted(call.func)
    found = definition_of(program, file, call)
    if found is None or isinstance(found[1], ast.ClassDef):
        return name == "next" or (listed("random_numbers", name) and not name.endswith("seed"))
    where, function = found
    nodes = list(ast.walk(function))
    if id(function) in seen or any(method_name(one) in ("backward", "step") for one in nodes):
        return False
    counted = (
        one for one in nodes if isinstance(one, ast.AugAssign) and dotted(one.target).startswith("self.")
    )
    returns = any(isinstance(one, ast.Return) and one.value is not None for one in nodes)
    return returns and (
        any(counted) or any(_draws(program, where, one, depth - 1, (*seen, id(function))) for one in nodes)
    )


def _draws_inside(program: Program, file: File, call: ast.Call) -> bool:
    """Whether an argument of a call draws already."""
    return any(_draws(program, file, one) for one in walk_all(arguments_of(call)))
