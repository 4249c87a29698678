"""What trains in a program: its batch loops, the loaders that they run over, and its epoch loop."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterator
from typing import Optional

from migrator.convert.distributed.batches import (
    Drawn,
    Guard,
    Loader,
    Name,
    counts,
    drawn_batches,
    fed,
    items,
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
    dotted,
    method_name,
    names_below,
    names_set,
    parameters,
)
from migrator.light import Declared
from migrator.names.tree import FUNCTIONS, Function, called_name, children, defaults, hands_on

_DEPTH = 8
_UNKNOWN = object()
_SOMETHING = object()  # what a call gives that is no constant
_VAGUE = (_UNKNOWN, _SOMETHING)


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
    more, quiet, doubtful = reaching, set[ast.Call](), set[ast.AST]()
    while more:
        by_function: dict[Scope, list[ast.Call]] = {}
        for node in reaching:
            by_function.setdefault(program.scope_of(node), []).append(node)
        more, quiet, doubtful = [], set(), set()
        for function, nodes in by_function.items():
            for site in program.call_sites(function):
                reached = {_reached(program, node, function, site) for node in nodes}
                if reached == {False}:
                    quiet.add(site)
                elif True not in reached:
                    doubtful.add(function)
                if site not in quiet and site not in reaching:
                    more.append(site)
        reaching = [*reaching, *more]
    calls = {key: [one for one in sites if one not in quiet] for key, sites in program.calls.items()}
    mixed = {key for key, sites in calls.items() if len(sites) != len(program.calls[key])}
    return program.but(calls=calls, mixed=frozenset(mixed | doubtful))


def _reached(program: Program, node: ast.AST, function: ast.AST, site: ast.Call) -> bool | None:
    """Whether a call of a function reaches a node of it; None where its arguments do not say."""
    result: bool | None = True
    for test, wanted in guards(program, node, function) if isinstance(function, FUNCTIONS) else ():
        names = {one.id for one in ast.walk(test) if isinstance(one, ast.Name)}
        for value in [value for name in names for value, _ in program.values(function, name)]:
            names |= {one.id for one in ast.walk(value or test) if isinstance(one, ast.Name)}
        if names.isdisjoint({*parameters(function)} - {"self"}):
            continue
        known = _value(program, function, site, test)
        if known in _VAGUE:
            result = None
        elif bool(known) is not wanted:
            return False
    return result


def _value(program: Program, function: ast.AST, site: ast.Call, node: ast.expr, depth: int = 6) -> object:
    """The value that an expression of a function has by one of its calls."""

    def value(inner: ast.expr) -> object:
        return _value(program, function, site, inner, depth - 1)

    if isinstance(node, ast.Constant):
        return node.value
    if depth and isinstance(node, ast.Name):
        bound = program.only_value(function, node.id)
        if bound is not None:
            return value(bound)
        if isinstance(function, FUNCTIONS) and not program.values(function, node.id):
            given = program.argument(site, function, node.id)
            if given is None and not hands_on(site):
                usual = (value for one, value in defaults(function.args) if one.arg == node.id)
                given = next(usual, None)
            if given is None or node.id not in parameters(function):
                return _UNKNOWN
            return given.value if isinstance(given, ast.Constant) else _SOMETHING
    elif depth and isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        known = value(node.operand)
        return _UNKNOWN if known in _VAGUE else not known
    elif depth and isinstance(node, ast.BoolOp):
        every = [value(one) for one in node.values]
        decides, sure = isinstance(node.op, ast.Or), [bool(one) for one in every if one not in _VAGUE]
        return decides if decides in sure else not decides if len(sure) == len(every) else _UNKNOWN
    elif depth and isinstance(node, ast.Compare) and len(node.ops) == 1:
        left, right = value(node.left), value(node.comparators[0])
        operator = node.ops[0]
        if isinstance(operator, (ast.Is, ast.IsNot)) and right is None and left is not _UNKNOWN:
            return (left is None) is isinstance(operator, ast.Is)
        if isinstance(operator, (ast.Eq, ast.NotEq)) and left not in _VAGUE and right not in _VAGUE:
            return (left == right) is isinstance(operator, ast.Eq)
    return _UNKNOWN


# -- the loops --------------------------------------------------------------------


class Epochs(Declared):
    """The loop over epochs, what counts them, and what the loader is called in it (empty: nothing plain)."""

    loop: Loop
    counter: str
    loader: str


class Training(Declared):
    """A loop over batches that trains. ``scopes``: those on the way to it, its own first.

    ``inside``: the nodes that run in it with gradients, those of called functions too. ``mixed``: the loop
    runs over other loaders as well, without training; ``when`` is the condition under which it trains, empty
    where there is no plain one. ``known``: what holds where it trains. ``items``: what gives the batches:
    what the loop runs over, and the iterators from which it draws; ``drawn`` the same where no loader does.
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
        if isinstance(up, LOOPS) and child in up.body:
            over = [up.iter] if isinstance(up, ast.For) else []
            over += [] if inner else _iterators(program, up)
            loaders: dict[ast.Call, Loader] = {}
            own: list[Drawn] = []
            if drawn:
                inside = list(_with_gradients(program, up))
                own = drawn_batches(program, up, scopes, inside, backward.func)
            else:
                loaders = {one.call: one for item in over for one in loader_calls(program, item, known)}
                inner = inner or (isinstance(up, ast.For) and not counts(up.iter))
            if own or loaders:
                yield _training(program, backward, up, known, tuple(loaders.values()), scopes, tuple(own))
                return
        elif isinstance(up, FUNCTIONS) and child in up.body:
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
    loop, inside = training.batches, [*training.inside]
    if reduced is not None and training.epochs:
        inside = [
            one
            for one in (*ast.walk(training.epochs.loop), *inside)
            if not isinstance(one, (ast.Assign, ast.AugAssign)) or names_set(one).isdisjoint(reduced)
        ]
    names: set[Name] = {name for one in training.drawn for name in one.held.every_name}
    seeds = {seed for one in training.drawn for seed in one.held.seeds}
    if isinstance(loop, ast.For) and not counts(loop.iter):
        names |= items(program, loop)
    else:
        seeds |= {node for node in inside if isinstance(node, ast.Call) and dotted(node.func) == "next"}
    return fed(program, inside, seeds, names).holds


def _iterators(program: Program, loop: Loop) -> list[ast.expr]:
    """The iterators from which a loop draws in each round: ``next(batches)``, ``batches.next()``."""
    scope = program.scope_of(loop)
    calls = (one for one in calls_in(loop) if called_name(one) == "next" and program.scope_of(one) is scope)
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
    drawn: tuple[Drawn, ...],
) -> Training:
    scope = program.scope_of(loop)
    many = len(program.call_sites(scope)) > 1
    way: list[Scope] = [*scopes, scope]
    also = not program.mixed.isdisjoint(way) or any(one.only for one in loaders)
    confused = len(loaders) > 1 and many and scope in program.mixed
    if confused or (drawn and (also or (known and many))):  # validation would be shared
        raise UncertainError("trains_and_validates", loop)
    text = loader_name(program, loop.iter, known) if isinstance(loop, ast.For) else ""
    epochs = _epochs(program, loop, text, way, _DEPTH)
    for place in way:  # grows: those that call the ones before, up to the start of the program
        callers = map(program.scope_of, program.call_sites(place))
        way.extend(one for one in list(callers) if one not in way)
    # The text of the one condition under which it trains, where it is the same before and behind it.
    test = known[0][0] if also and len(known) == 1 and known[0][1] else None
    return Training(
        backward,
        loop,
        loaders,
        (*([loop.iter] if isinstance(loop, ast.For) else []), *_iterators(program, loop)),
        epochs,
        tuple(way),
        frozenset(_with_gradients(program, loop)),
        tuple(known),
        also,
        program.segment(test) if test and not names_below(test) & names_set(loop) else "",
        drawn,
    )


def _with_gradients(program: Program, loop: Loop) -> Iterator[ast.AST]:
    """What runs in a loop with gradients, followed into the project's functions."""
    seen: set[ast.AST] = set()
    waiting: list[ast.AST] = [*loop.body]
    while waiting:
        node = waiting.pop()
        withs = node.items if isinstance(node, (ast.With, ast.AsyncWith)) else []
        decorators = node.decorator_list if isinstance(node, FUNCTIONS) else []
        heads = " ".join(map(ast.dump, (*(item.context_expr for item in withs), *decorators)))
        if "no_grad" in heads or "inference_mode" in heads:
            continue
        yield node
        waiting += children(node)
        found = program.function_of(node)
        if found and found not in seen:
            seen.add(found)
            waiting.append(found)


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
        return dotted(loop.target) if counts(loop.iter) else ""
    if isinstance(loop.test, ast.Compare) and isinstance(loop.test.ops[0], (ast.Lt, ast.LtE)):
        counter = dotted(loop.test.left)
        if any(isinstance(one, ast.AugAssign) and dotted(one.target) == counter for one in loop.body):
            return counter
    return ""


def _renamed(program: Program, function: Function, call: ast.Call, text: str) -> str:
    """What a function's name for something is called where the function is called."""
    first = re.split(r"[.\[]", text)[0]
    base = text
    if first == "self" and program.class_of(function):
        base = dotted(call.func.value) if isinstance(call.func, ast.Attribute) else ""
        base = base if function.name != "__init__" else ""
    elif first in parameters(function):
        base = dotted(program.argument(call, function, first))
    else:
        return text
    return f"{base}{text[len(first) :]}" if base else ""
