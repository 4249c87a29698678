"""What trains in a program: its batch loops, the loaders that they run over, and its epoch loop."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Optional

from migrator.convert.distributed.batches import (
    Drawn,
    Guard,
    Loader,
    counts,
    drawn_batches,
    fed_by,
    loader_calls,
    loader_name,
)
from migrator.convert.draft import UncertainError
from migrator.convert.program import (
    LOOPS,
    Loop,
    Program,
    Scope,
    below,
    calls_in,
    default,
    dotted,
    last_name,
    method_name,
    names_below,
    names_set,
    parameters,
)
from migrator.names.tree import FUNCTIONS, Function, children, hands_on

_DEPTH = 8
_UNKNOWN = object()
_SOMETHING = object()  # what a call gives that is no constant


# -- the calls that train: those for which the conditions around ``backward()`` can hold ----


def guards(program: Program, node: ast.AST, top: ast.AST) -> list[Guard]:
    """The conditions between a node and one around it, each with the value that lets the node be reached.

    A condition both of whose branches call ``backward`` is none.
    """
    found: list[Guard] = []
    for child, up in program.above(node):
        if child is top:
            break
        if isinstance(up, ast.If) and child is not up.test:
            other = up.orelse if child in up.body else up.body
            if not any(isinstance(one, ast.Attribute) and one.attr == "backward" for one in below(*other)):
                found.append((up.test, child in up.body))
    return found


def backward_calls(program: Program) -> list[ast.Call]:
    """Where a program calls ``backward()``."""
    return [call for call in program.nodes(ast.Call) if method_name(call) == "backward"]


def training_view(program: Program) -> Program:
    """The program without the calls that never reach ``backward()``, as ``run(loader, train=False)``."""
    reaching = backward_calls(program)
    while True:
        by_function: dict[Scope, list[ast.Call]] = {}
        for node in reaching:
            by_function.setdefault(program.scope_of(node), []).append(node)
        quiet: set[ast.Call] = set()
        doubtful: set[ast.AST] = set()
        more = []
        for function, nodes in by_function.items():
            for site in program.call_sites(function):
                reached = [_reached(program, node, function, site) for node in nodes]
                if all(one is False for one in reached):
                    quiet.add(site)
                elif all(one is not True for one in reached):
                    doubtful.add(function)
                if site not in quiet and site not in reaching:
                    more.append(site)
        if not more:
            break
        reaching += more
    calls = {key: [one for one in sites if one not in quiet] for key, sites in program.calls.items()}
    mixed = {key for key, sites in calls.items() if len(sites) != len(program.calls[key])}
    return program.but(calls=calls, mixed=frozenset(mixed | doubtful))


def _reached(program: Program, node: ast.AST, function: ast.AST, site: ast.Call) -> bool | None:
    """Whether a call of a function reaches a node of it; None where its arguments do not say."""
    result: bool | None = True
    for test, wanted in guards(program, node, function):
        if not isinstance(function, FUNCTIONS) or not _asks_parameter(program, test, function):
            continue
        value = _Called(program, function, site).value(test, 6)
        if value in (_UNKNOWN, _SOMETHING):
            result = None
        elif bool(value) is not wanted:
            return False
    return result


def _asks_parameter(program: Program, test: ast.expr, function: Function) -> bool:
    names = {node.id for node in ast.walk(test) if isinstance(node, ast.Name)}
    for name in list(names):
        for value, _ in program.values(function, name):
            names |= {node.id for node in ast.walk(value or test) if isinstance(node, ast.Name)}
    return bool(names & {*parameters(function)} - {"self"})


@dataclass(frozen=True)
class _Called:
    """One call of a function of the project."""

    program: Program
    function: Function
    site: ast.Call

    def value(self, node: ast.expr, depth: int) -> object:
        """The value that an expression of the function has by this call."""
        if isinstance(node, ast.Constant):
            return node.value
        if depth and isinstance(node, ast.Name):
            return self._of_name(node.id, depth)
        if depth and isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            value = self.value(node.operand, depth - 1)
            return _UNKNOWN if value in (_UNKNOWN, _SOMETHING) else not value
        if depth and isinstance(node, ast.BoolOp):
            values = [self.value(one, depth - 1) for one in node.values]
            decides = isinstance(node.op, ast.Or)
            known = [bool(one) for one in values if one not in (_UNKNOWN, _SOMETHING)]
            if decides in known:
                return decides
            return not decides if len(known) == len(values) else _UNKNOWN
        if depth and isinstance(node, ast.Compare) and len(node.ops) == 1:
            sides = [self.value(one, depth - 1) for one in (node.left, node.comparators[0])]
            return _compared(sides[0], node.ops[0], sides[1])
        return _UNKNOWN

    def _of_name(self, name: str, depth: int) -> object:
        bound = self.program.only_value(self.function, name)
        if bound is not None:
            return self.value(bound, depth - 1)
        if self.program.values(self.function, name) or name not in parameters(self.function):
            return _UNKNOWN
        given = self.program.argument(self.site, self.function, name)
        if given is None and not hands_on(self.site):
            given = default(self.function, name)
        return given.value if isinstance(given, ast.Constant) else _UNKNOWN if given is None else _SOMETHING


def _compared(left: object, operator: ast.cmpop, right: object) -> object:
    if isinstance(operator, (ast.Is, ast.IsNot)) and right is None and left is not _UNKNOWN:
        return (left is None) is isinstance(operator, ast.Is)
    if _UNKNOWN in (left, right) or _SOMETHING in (left, right):
        return _UNKNOWN
    if isinstance(operator, ast.Eq):
        return left == right
    return left != right if isinstance(operator, ast.NotEq) else _UNKNOWN


# -- the loops --------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Epochs:
    """The loop over epochs, what counts them, and what the loader is called in it (empty: nothing plain)."""

    loop: Loop
    counter: str
    loader: str


@dataclass(frozen=True, eq=False)
class Training:
    """A loop over batches that trains. ``scopes``: those on the way to it, its own first.

    ``inside``: the nodes that run in it with gradients, those of called functions too. ``mixed``: the loop
    runs over other loaders as well, without training; ``when`` is the condition under which it trains,
    empty where there is no plain one. ``known``: what holds where it trains. ``items``: what gives the
    batches: what the loop runs over, and the iterators from which it draws; ``drawn`` the same where no
    loader does.
    """

    backward: ast.Call
    batches: Loop
    loaders: tuple[Loader, ...]
    items: tuple[ast.expr, ...]
    epochs: Optional[Epochs]
    scopes: tuple[Scope, ...]
    inside: frozenset[ast.AST]
    known: tuple[Guard, ...]
    mixed: bool
    when: str
    drawn: tuple[Drawn, ...] = ()


def trainings(program: Program) -> list[Training]:
    """The program's training loops. Raises UncertainError where there is none whose batches are known."""
    view = training_view(program)
    found: dict[Loop, Training] = {}
    backwards = backward_calls(program)
    for drawn in (False, True):  # without a loader the program draws its batches itself
        for call in backwards if not found else ():
            for training in _above(view, call, call, (), drawn):
                found.setdefault(training.batches, training)
    if not found:
        raise UncertainError("no_loop_over_loader" if backwards else "no_backward")
    return list(found.values())


def _above(
    program: Program, node: ast.AST, backward: ast.Call, scopes: tuple[Scope, ...], drawn: bool
) -> Iterator[Training]:
    """The innermost training loop on each way to a node; ``scopes`` are those on the way so far."""
    known = guards(program, node, program.scope_of(node))
    inner = False
    for child, up in program.above(node):
        if drawn and isinstance(up, LOOPS) and child in up.body:
            inside = list(_with_gradients(program, up))
            own = drawn_batches(program, up, scopes, inside, backward.func)
            if own:
                yield _training(program, backward, up, known, (), scopes, tuple(own))
                return
        elif isinstance(up, LOOPS) and child in up.body:
            items = [] if inner else _iterators(program, up)
            items = [up.iter, *items] if isinstance(up, ast.For) else items
            loaders = {one.call: one for item in items for one in loader_calls(program, item, known)}
            if loaders:
                yield _training(program, backward, up, known, tuple(loaders.values()), scopes)
                return
            inner = inner or (isinstance(up, ast.For) and not counts(up.iter))
        if isinstance(up, FUNCTIONS) and child in up.body:
            sites = program.call_sites(up)
            for call in sites if len(scopes) < _DEPTH else ():
                yield from _above(program, call, backward, (*scopes, up), drawn)
            if sites or program.class_of(up) is not None:
                return  # a function that is only handed on, as an optimizer's closure, runs where it stands


def feeds(
    program: Program, training: Training, reduced: Collection[str] | None = None
) -> Callable[[ast.AST], bool]:
    """Tells whether an expression holds what comes of a loop's batches.

    In the loop over epochs, too, where it is told what there is ``reduced`` to be the same on every rank.
    """
    inside = list(_with_gradients(program, training.batches))
    if reduced is not None and training.epochs:
        inside = [
            one
            for one in (*ast.walk(training.epochs.loop), *inside)
            if not isinstance(one, (ast.Assign, ast.AugAssign)) or names_set(one).isdisjoint(reduced)
        ]
    return fed_by(program, training.batches, training.drawn, inside)


def _iterators(program: Program, loop: Loop) -> list[ast.expr]:
    """The iterators from which a loop draws in each round: ``next(batches)``, ``batches.next()``."""
    scope = program.scope_of(loop)
    calls = (one for one in calls_in(loop) if last_name(one) == "next" and program.scope_of(one) is scope)
    return [
        one.func.value if isinstance(one.func, ast.Attribute) else one.args[0]
        for one in calls
        if (one.args or method_name(one)) and not guards(program, one, loop)
    ]


def _training(
    program: Program,
    backward: ast.Call,
    loop: Loop,
    known: list[Guard],
    loaders: tuple[Loader, ...],
    scopes: tuple[Scope, ...],
    drawn: tuple[Drawn, ...] = (),
) -> Training:
    scope = program.scope_of(loop)
    sites = program.call_sites(scope)
    if len(loaders) > 1 and len(sites) > 1 and scope in program.mixed:
        raise UncertainError("trains_and_validates", loop)
    way: list[Scope] = [*scopes, scope]
    text = loader_name(program, loop.iter, known) if isinstance(loop, ast.For) else ""
    epochs = _epochs(program, loop, text, way, _DEPTH)
    for place in way:  # grows: those that call the ones before, up to the start of the program
        callers = map(program.scope_of, program.call_sites(place))
        way.extend(one for one in list(callers) if one not in way)
    also = not program.mixed.isdisjoint([*scopes, scope]) or any(one.only for one in loaders)
    if drawn and (also or (known and len(sites) > 1)):  # validation would be shared
        raise UncertainError("trains_and_validates", loop)
    iterated = [loop.iter] if isinstance(loop, ast.For) else []
    # The text of the one condition under which it trains, where it is the same before and behind it.
    test = known[0][0] if also and len(known) == 1 and known[0][1] else None
    when = program.segment(test) if test and not names_below(test) & names_set(loop) else ""
    return Training(
        backward,
        loop,
        loaders,
        (*iterated, *_iterators(program, loop)),
        epochs,
        tuple(way),
        frozenset(_with_gradients(program, loop)),
        tuple(known),
        also,
        when,
        drawn,
    )


def _with_gradients(program: Program, loop: Loop) -> Iterator[ast.AST]:
    """What runs in a loop with gradients, followed into the project's functions."""
    seen: set[ast.AST] = set()
    waiting: list[ast.AST] = [*loop.body]
    while waiting:
        node = waiting.pop()
        if _without_gradients(node):
            continue
        yield node
        waiting += children(node)
        found = program.function_of(node)
        if found and found not in seen:
            seen.add(found)
            waiting.append(found)


def _without_gradients(node: ast.AST) -> bool:
    heads: list[ast.expr] = []
    if isinstance(node, FUNCTIONS):
        heads = node.decorator_list
    elif isinstance(node, (ast.With, ast.AsyncWith)):
        heads = [item.context_expr for item in node.items]
    return any(part in ast.dump(one) for one in heads for part in ("no_grad", "inference_mode"))


def _epochs(program: Program, loop: ast.AST, text: str, way: list[Scope], depth: int) -> Epochs | None:
    for child, up in program.above(loop):
        counter = _counter(up) if isinstance(up, LOOPS) and child in up.body else ""
        if isinstance(up, LOOPS) and counter:
            outside = text.partition("[")[0] not in names_set(up)
            return Epochs(up, counter, text if outside else "")
        if isinstance(up, FUNCTIONS) and child in up.body:
            sites = program.call_sites(up)
            if len(sites) != 1 or not depth:
                return None
            way.append(program.scope_of(sites[0]))
            return _epochs(program, sites[0], _renamed(program, up, sites[0], text), way, depth - 1)
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


def _renamed(program: Program, function: Function, call: ast.Call, text: str) -> str:
    """What a function's name for something is called where the function is called."""
    first = re.split(r"[.\[]", text)[0]
    rest = text[len(first) :]
    if first == "self" and program.class_of(function):
        base = dotted(call.func.value) if isinstance(call.func, ast.Attribute) else ""
        return f"{base}{rest}" if base and function.name != "__init__" else ""
    if first in parameters(function):
        given = dotted(program.argument(call, function, first))
        return f"{given}{rest}" if given else ""
    return text
