"""What trains in a program: its batch loops, the loaders that they run over, and its epoch loop."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

from migrator.convert.distributed.find.batches import Drawn, drawn_batches, fed_by
from migrator.convert.distributed.find.conditions import Guard, backward_calls, guards, training_view
from migrator.convert.distributed.find.iterables import Loader, counts, loader_calls, loader_name
from migrator.convert.draft import UncertainError
from migrator.convert.program import File, Program
from migrator.convert.syntax import (
    LOOPS,
    Loop,
    dotted,
    last_name,
    method_name,
    names_below,
    parameters,
    stored_below,
)
from migrator.convert.values import call_sites, definition_of
from migrator.names.tree import FUNCTIONS

_DEPTH = 8


@dataclass(frozen=True, eq=False)
class Epochs:
    """The loop over epochs, what counts them, and what the loader is called in it (empty: nothing plain)."""

    file: File
    loop: ast.For | ast.While
    counter: str
    loader: str


@dataclass(frozen=True, eq=False)
class Training:
    """A loop over batches that trains. ``scopes``: the functions on the way to it (None: a file's margin).

    ``inside``: the ids of the nodes that run in it with gradients, those of called functions too.
    ``mixed``: the loop runs over other loaders as well, without training; ``when`` is the condition
    under which it trains, empty where there is no plain one. ``known``: what holds where it trains.
    ``drawn``: what gives the batches where no loader does.
    """

    file: File
    backward: ast.Call
    batches: ast.For | ast.While
    loaders: tuple[Loader, ...]
    epochs: Epochs | None
    scopes: tuple[tuple[File, Any], ...]
    inside: frozenset[int]
    known: tuple[Guard, ...]
    mixed: bool
    when: str
    drawn: tuple[Drawn, ...] = ()

    @property
    def items(self) -> list[Any]:
        """What gives the batches: what the loop runs over, and the iterators from which it draws."""
        drawn = _drawn(self.file, self.batches)
        return [self.batches.iter, *drawn] if isinstance(self.batches, ast.For) else drawn


def trainings(program: Program) -> list[Training]:
    """The program's training loops. Raises UncertainError where there is none whose batches are known."""
    view = training_view(program)
    found: dict[int, Training] = {}
    backwards = backward_calls(program)
    for drawn in (False, True):  # without a loader the program draws its batches itself
        for file, call in backwards if not found else ():
            for training in _above(view, file, call, call, (), drawn):
                found.setdefault(id(training.batches), training)
    if not found:
        raise UncertainError("no_loop_over_loader" if backwards else "no_backward")
    return list(found.values())


def _above(
    program: Program,
    file: File,
    node: ast.AST,
    backward: ast.Call,
    scopes: tuple[tuple[File, Any], ...],
    drawn: bool,
) -> Iterator[Training]:
    """The innermost training loop on each way to a node; ``scopes`` are those on the way so far."""
    function = file.function_of(node)
    known = guards(file, node, function)
    inner = False
    for child, up in file.above(node):
        if drawn and isinstance(up, LOOPS) and child in up.body:
            inside = list(_with_gradients(program, file, up))
            own = drawn_batches(program, file, up, [one for _, one in scopes], inside, backward.func)
            if own:
                yield _training(program, file, backward, up, known, (), scopes, tuple(own))
                return
        elif isinstance(up, LOOPS) and child in up.body:
            items = [] if inner else _drawn(file, up)
            items = [up.iter, *items] if isinstance(up, ast.For) else items
            ways = [loader_calls(program, file, one, known) for one in items]
            loaders = {id(one.call): one for way in ways for one in way}
            if loaders:
                yield _training(program, file, backward, up, known, tuple(loaders.values()), scopes)
                return
            inner = inner or (isinstance(up, ast.For) and not counts(up.iter))
        if isinstance(up, FUNCTIONS) and child in up.body:
            sites = call_sites(program, up)
            for where, call in sites if len(scopes) < _DEPTH else ():
                yield from _above(program, where, call, backward, (*scopes, (file, up)), drawn)
            if sites or file.class_of(up) is not None:
                return  # a function that is only handed on, as an optimizer's closure, runs where it stands


def feeds(
    program: Program, training: Training, reduced: Collection[str] | None = None
) -> Callable[[ast.AST], bool]:
    """Tells whether an expression holds what comes of a loop's batches.

    In the loop over epochs, too, where it is told what there is ``reduced`` to be the same on every rank.
    """
    inside = list(_with_gradients(program, training.file, training.batches))
    if reduced is not None and training.epochs:
        every = [*((training.epochs.file, one) for one in ast.walk(training.epochs.loop)), *inside]
        inside = [(file, one) for file, one in every if not _sets(one, reduced)]
    return fed_by(program, training.file, training.batches, training.drawn, inside)


def _sets(node: ast.AST, names: Collection[str]) -> bool:
    return isinstance(node, (ast.Assign, ast.AugAssign)) and not {*names}.isdisjoint(
        map(dotted, stored_below(node))
    )


def _drawn(file: File, loop: Loop) -> list[Any]:
    """The iterators from which a loop draws in each round: ``next(batches)``, ``batches.next()``."""
    calls = (one for one in ast.walk(loop) if isinstance(one, ast.Call) and last_name(one) == "next")
    own = (one for one in calls if file.function_of(one) is file.function_of(loop))
    same = [one for one in own if not guards(file, one, loop)]
    return [
        one.func.value if isinstance(one.func, ast.Attribute) else one.args[0]
        for one in same
        if one.args or method_name(one)
    ]


def _training(
    program: Program,
    file: File,
    backward: ast.Call,
    loop: Loop,
    known: list[Guard],
    loaders: tuple[Loader, ...],
    scopes: tuple[tuple[File, Any], ...],
    drawn: tuple[Drawn, ...] = (),
) -> Training:
    function = file.function_of(loop)
    doubtful = len(loaders) > 1 and len(call_sites(program, function)) > 1 if function is not None else False
    if doubtful and id(function) in program.mixed:
        raise UncertainError("trains_and_validates", file, loop)
    way: list[tuple[File, Any]] = [*scopes, (file, function)]
    text = loader_name(file, loop.iter, known) if isinstance(loop, ast.For) else ""
    epochs = _epochs(program, file, loop, text, way, _DEPTH)
    for place in way:  # grows: those that call the ones before, up to the start of the program
        callers = call_sites(program, place[1]) if place[1] is not None else []
        more = [(where, file.function_of(call)) for where, call in callers]
        way.extend(one for one in more if one not in way)
    functions = (one for _, one in (*scopes, (file, function)))
    also = any(id(one) in program.mixed for one in functions) or any(one.only for one in loaders)
    if drawn and (also or (known and len(call_sites(program, function)) > 1)):  # validation would be shared
        raise UncertainError("trains_and_validates", file, loop)
    inside = frozenset(id(node) for _, node in _with_gradients(program, file, loop))
    when = _when(file, loop, known) if also else ""
    return Training(
        file, backward, loop, loaders, epochs, tuple(way), inside, tuple(known), also, when, drawn
    )


def _when(file: File, loop: Loop, known: list[Guard]) -> str:
    """The text of the one condition under which a loop trains, where it is the same before and behind it."""
    if len(known) != 1 or not known[0][1]:
        return ""
    stored = set(map(dotted, stored_below(loop)))
    return "" if names_below(known[0][0]) & stored else file.index.segment(known[0][0])


def _with_gradients(program: Program, file: File, loop: Loop) -> Iterator[tuple[File, Any]]:
    """What runs in a loop with gradients, followed into the project's functions."""
    seen: set[int] = set()
    waiting: list[tuple[File, Any]] = [(file, one) for one in loop.body]
    while waiting:
        where, node = waiting.pop()
        if _without_gradients(node):
            continue
        yield where, node
        waiting += [(where, one) for one in ast.iter_child_nodes(node)]
        found = definition_of(program, where, node)
        if found and isinstance(found[1], FUNCTIONS) and id(found[1]) not in seen:
            seen.add(id(found[1]))
            waiting.append(found)


def _without_gradients(node: ast.AST) -> bool:
    heads: list[Any] = []
    if isinstance(node, FUNCTIONS):
        heads = node.decorator_list
    elif isinstance(node, (ast.With, ast.AsyncWith)):
        heads = [item.context_expr for item in node.items]
    return any(part in ast.dump(one) for one in heads for part in ("no_grad", "inference_mode"))


def _epochs(
    program: Program, file: File, loop: Any, text: str, way: list[tuple[File, Any]], depth: int
) -> Epochs | None:
    for child, up in file.above(loop):
        counter = _counter(up) if isinstance(up, LOOPS) and child in up.body else ""
        if counter:
            return Epochs(file, up, counter, text if _outside(up, text) else "")
        if isinstance(up, FUNCTIONS) and child in up.body:
            sites = call_sites(program, up)
            if len(sites) != 1 or not depth:
                return None
            where, call = sites[0]
            way.append((where, file.function_of(call)))
            return _epochs(program, where, call, _renamed(file, up, call, text), way, depth - 1)
    return None


def _counter(loop: Loop) -> str:
    """What counts the rounds of a loop: of ``for epoch in range(…)``, or of ``while epoch < …``."""
    if isinstance(loop, ast.For):
        return dotted(loop.target) if isinstance(loop.iter, ast.Call) and counts(loop.iter) else ""
    if isinstance(loop.test, ast.Compare) and isinstance(loop.test.ops[0], (ast.Lt, ast.LtE)):
        counter = dotted(loop.test.left)
        if any(isinstance(one, ast.AugAssign) and dotted(one.target) == counter for one in loop.body):
            return counter
    return ""


def _outside(loop: Loop, text: str) -> bool:
    """Whether a name is bound outside of the loop."""
    return bool(text) and text.partition("[")[0] not in map(dotted, stored_below(loop))


def _renamed(file: File, function: Any, call: ast.Call, text: str) -> str:
    """What a function's name for something is called where the function is called."""
    first = re.split(r"[.\[]", text)[0]
    rest = text[len(first) :]
    if first == "self" and file.class_of(function):
        base = dotted(call.func.value) if isinstance(call.func, ast.Attribute) else ""
        return f"{base}{rest}" if base and function.name != "__init__" else ""
    if first in parameters(function):
        given = dotted(file.argument(call, function, first))
        return f"{given}{rest}" if given else ""
    return text
