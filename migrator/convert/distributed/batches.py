"""Batches that a program makes itself: by a generator or an object of its own, by a counter, or at random.

Where the values of some expressions go is told by names, each behind its scope.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Optional

from migrator.convert.distributed.loaders import counts, stripped
from migrator.convert.program import (
    Loop,
    Program,
    Scope,
    below,
    calls_in,
    dotted,
    is_stored,
    last_name,
    method_name,
    names_set,
    parameters,
)
from migrator.names.tree import FUNCTIONS, LEAVING, arguments_of
from migrator.project.distributed_use import listed

_DEPTH = 6
_SHOWS = "print info debug log write set_description set_postfix append format time item".split()
_MOVES = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.NamedExpr, ast.For, ast.comprehension, ast.Call)

Nodes = Sequence[ast.AST]
Name = tuple[Optional[Scope], str]  # without a scope for attributes of self


# -- where values go ----------------------------------------------------------------


def _name(program: Program, node: ast.AST) -> Name:
    """The name that a node stands for, with its scope."""
    text = dotted(node.value if isinstance(node, ast.Subscript) else node)
    return None if text.startswith("self.") else program.scope_of(node), text


def holds(program: Program, node: ast.AST, seeds: Collection[ast.AST], names: Collection[Name]) -> bool:
    """Whether an expression holds one of some others, or of some names."""
    texts = {text for _, text in names}
    for one in ast.walk(node):
        if one in seeds:
            return True
        if isinstance(one, (ast.Name, ast.Attribute)) and (text := dotted(one)) in texts:
            scope: Scope | None = None
            while True:
                if (scope, text) in names:
                    return True
                if isinstance(scope, ast.Module):
                    break
                scope = program.scope_of(scope or one)
    return False


def fed(
    program: Program, inside: Nodes, seeds: Collection[ast.AST], names: Collection[Name]
) -> frozenset[Name]:
    """The names that hold what comes from some expressions and names."""
    known = set(names)
    moves = [node for node in inside if isinstance(node, _MOVES)]
    count = -1
    while count != len(known):
        count = len(known)
        for node in moves:
            known.update(_moved(program, node, seeds, known))
    return frozenset(known)


def _moved(program: Program, node: ast.AST, seeds: Collection[ast.AST], known: set[Name]) -> Iterator[Name]:
    def is_held(value: ast.AST | None) -> bool:
        return value is not None and holds(program, value, seeds, known)

    if isinstance(node, ast.Call):
        if not any(map(is_held, arguments_of(node))):
            return
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("append", "extend"):
            yield _name(program, node.func.value)
        found = program.function_of(node)
        stars = any(isinstance(one, ast.Starred) for one in node.args)
        for name in parameters(found):
            value = program.argument(node, found, name)
            if is_held(value) or (value is None and stars):
                yield found, name
        return
    value = node.iter if isinstance(node, (ast.For, ast.comprehension)) else getattr(node, "value", None)
    targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
    if is_held(value):
        for target in filter(None, targets):
            yield from (_name(program, one) for one in below(target) if is_stored(one))


# -- what gives the batches ------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Drawn:
    """An expression that gives all batches one by one, or, where it is ``one``, the next each time.

    ``seeds`` and ``names``: the expressions and the names that hold what comes of it.
    """

    node: ast.expr
    one: bool
    seeds: frozenset[ast.AST]
    names: frozenset[Name]

    def feeds(self, program: Program, node: ast.AST) -> bool:
        """Whether an expression holds what comes of it."""
        return holds(program, node, self.seeds, self.names)


def drawn_batches(
    program: Program, loop: Loop, functions: Sequence[ast.AST], inside: Nodes, loss: ast.expr
) -> list[Drawn]:
    """What gives a loop its batches, where it ends in the ``loss`` and the loop takes the optimizer's steps.

    ``functions``: those on the way from the loop to ``backward()``; ``inside``: what runs in the loop with
    gradients.
    """
    if not any(map(is_step, inside)):
        return []
    whole = _of_loop(program, loop, inside) if isinstance(loop, ast.For) else None
    if whole is not None and whole.feeds(program, loss):
        return [whole]
    own = below(loop, *functions)
    found = []
    for node in inside:
        if node in own and isinstance(node, ast.Call) and _may_turn(program, node, loop, functions):
            if _draws(program, node) and not any(_draws(program, one) for one in below(*arguments_of(node))):
                seeds: frozenset[ast.AST] = frozenset({node})
                one = Drawn(node, True, seeds, fed(program, inside, seeds, ()))
                found += [one] if one.feeds(program, loss) else []
    return found


def is_step(node: ast.AST) -> bool:
    """Whether a node steps an optimizer."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "step"
        and "sched" not in dotted(node.func.value).lower()
    )


def fed_by(program: Program, loop: Loop, drawn: Sequence[Drawn], inside: Nodes) -> Callable[[ast.AST], bool]:
    """Tells whether an expression holds what comes of the batches of a loop."""
    names: set[Name] = {name for one in drawn for name in one.names}
    seeds = {seed for one in drawn for seed in one.seeds}
    if isinstance(loop, ast.For) and not counts(loop.iter):
        names |= _items(program, loop)
    else:
        seeds |= {node for node in inside if isinstance(node, ast.Call) and dotted(node.func) == "next"}
    known = fed(program, inside, seeds, names)
    return lambda node: holds(program, node, seeds, known)


def is_of(program: Program, drawn: Drawn, node: ast.expr) -> bool:
    """Whether an expression names what gives a loop all of its batches, there or where it comes from."""
    given: ast.expr | None = drawn.node
    for _ in range(_DEPTH):
        if given is None or not dotted(given):
            return False
        if _name(program, given) == _name(program, node):
            return True
        scope = program.scope_of(given)
        sites = program.call_sites(scope) if dotted(given) in parameters(scope) else []
        if len(sites) != 1:
            return False
        given = program.argument(sites[0], scope, dotted(given))
    return False


def carried(program: Program, loop: Loop, calls: Sequence[ast.expr]) -> ast.expr | None:
    """What goes from one batch to the next: an argument of the model that its result sets anew; or None."""
    targets = _items(program, loop) if isinstance(loop, ast.For) else set()
    for node in calls:
        statement, scope = program.statement_of(node), program.scope_of(node)
        call = next(up for _, up in program.above(node) if isinstance(up, ast.Call))
        own = scope is program.scope_of(loop)
        for name in _read(call) & names_set(statement):
            if not own and not name.startswith("self."):
                continue  # each call of a function begins anew
            stores = program.stores.get((scope, name), [])
            before = [program.statement_of(one) for one in stores if one.lineno < statement.lineno]
            fresh = (one in below(loop) or not own for one in before if name not in _read(one))
            if not any(fresh) and not any(_name(program, one) in targets for one in stores):
                return node
    return None


def _read(node: ast.AST) -> set[str]:
    return {dotted(one) for one in ast.walk(node) if not is_stored(one)} - {""}


def _of_loop(program: Program, loop: ast.For, inside: Nodes) -> Drawn | None:
    """What a loop runs over, where that gives batches or the places of batches."""
    inner = stripped(loop.iter)
    places = fed(program, inside, (), _items(program, loop))
    if not counts(loop.iter):
        return Drawn(inner, False, frozenset(), places) if _gives_batches(program, inner) else None
    taken = {
        node: program.scope_of(node)
        for node in inside
        if isinstance(node, ast.Subscript) and holds(program, node.slice, (), places)
    }
    for node in inside:
        if isinstance(node, ast.If) and holds(program, node.test, (), places) and not _only_shows(node):
            return None  # the ranks would not agree
    makers = (node for node in inside if program.definition_of(node) in taken.values())
    seeds: frozenset[ast.AST] = frozenset((*taken, *makers))
    return Drawn(inner, False, seeds, fed(program, inside, seeds, ()))


def _items(program: Program, loop: ast.For) -> set[Name]:
    """The names of what a loop runs over, without what ``enumerate`` counts."""
    target: ast.expr = loop.target
    if "enumerate" in map(last_name, ast.walk(loop.iter)) and isinstance(target, ast.Tuple):
        target = target.elts[-1]
    return {_name(program, one) for one in below(target) if is_stored(one)}


def _only_shows(node: ast.If) -> bool:
    leaves = (isinstance(one, LEAVING) for one in ast.walk(node))
    return all((method_name(one) or last_name(one)) in _SHOWS for one in calls_in(node)) and not any(leaves)


def _gives_batches(program: Program, node: ast.expr, depth: int = _DEPTH) -> bool:
    """Whether all that an expression may be is iterated in the same order on every rank."""
    found = program.origins(node) if depth else []
    return bool(found) and all(_is_iterated(program, one, depth) for one in found)


def _is_iterated(program: Program, node: ast.expr, depth: int) -> bool:
    if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.List, ast.Tuple)):
        return True
    if isinstance(node, ast.Subscript):
        return _gives_batches(program, node.value, depth - 1)
    if not isinstance(node, ast.Call) or counts(node):
        return False
    if program.definition_of(node) is not None:
        return True
    name = program.name(node) or dotted(node.func)
    if listed("loaders", name):
        return False
    if name in ("zip", "list", "iter", "enumerate", "reversed", "sorted") and node.args:
        return all(_gives_batches(program, one, depth - 1) for one in node.args)
    return name.partition(".")[0] in ("torch", "numpy", "random") or method_name(node) in ("split", "chunk")


def _may_turn(program: Program, call: ast.Call, loop: Loop, functions: Sequence[ast.AST]) -> bool:
    """Whether what a call gives may differ between ranks: no condition asks for it."""
    for child, up in program.above(call):
        if isinstance(up, (ast.If, ast.While, ast.IfExp)) and child is up.test:
            return False
        if up is loop or up in functions:
            return up is not loop or child in loop.body
    return False


def _draws(program: Program, call: ast.AST, depth: int = _DEPTH, seen: tuple[ast.AST, ...] = ()) -> bool:
    """Whether each call gives something else: at random, the next of something, or by an object's state."""
    if not isinstance(call, ast.Call) or not depth:
        return False
    name = program.name(call) or dotted(call.func)
    function = program.definition_of(call)
    if not isinstance(function, FUNCTIONS):
        return name == "next" or (listed("random_numbers", name) and not name.endswith("seed"))
    nodes = list(ast.walk(function))
    if function in seen or any(method_name(one) in ("backward", "step") for one in nodes):
        return False
    if not any(isinstance(one, ast.Return) and one.value is not None for one in nodes):
        return False
    return any(
        (isinstance(one, ast.AugAssign) and dotted(one.target).startswith("self."))
        or _draws(program, one, depth - 1, (*seen, function))
        for one in nodes
    )
