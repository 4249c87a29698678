"""Where batches come from: a DataLoader under what a loop runs over, or what a program makes itself.

That is a generator or an object of its own, a counter, or chance. Where the values of some expressions go is
told by names, each behind its scope.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import field, replace
from itertools import chain
from typing import Optional

from migrator.convert.program import (
    Loop,
    Program,
    Scope,
    below,
    calls_in,
    constant,
    dotted,
    is_stored,
    method,
    method_name,
    names_set,
    parameters,
)
from migrator.light import Declared
from migrator.names.tree import FUNCTIONS, LEAVING, arguments_of, called_name
from migrator.project.frameworks import listed

_DEPTH = 8
_STEPS = 6
_SHOWS = "print info debug log write set_description set_postfix append format time item".split()
_MOVES = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.NamedExpr, ast.For, ast.comprehension, ast.Call)

Guard = tuple[ast.expr, bool]  # a condition, and whether it holds
Ways = list[tuple[ast.expr, str]]  # iterables, each with the condition under which it is the one
Nodes = Sequence[ast.AST]
Name = tuple[Optional[Scope], str]  # without a scope for attributes of self


# -- loaders ---------------------------------------------------------------------------


class Loader(Declared):
    """A DataLoader call that makes a training loader. ``only``: where it makes others too, a condition."""

    call: ast.Call
    only: str = ""


def stripped(node: ast.expr) -> ast.expr:
    """What ``enumerate``, ``tqdm`` and the like are put around."""
    while isinstance(node, ast.Call) and node.args and listed("pass_items_on", called_name(node)):
        node = node.args[0]
    return node


def counts(iterable: ast.expr) -> bool:
    """Whether an iterable is a ``range``."""
    return called_name(stripped(iterable)) in ("range", "trange", "count")


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
        asked = ast.dump(node.test)
        ways = [node.body if holds else node.orelse for test, holds in known if ast.dump(test) == asked]
        return [(way, "") for way in ways[:1]]
    key = _key(node, known) if isinstance(node, ast.Subscript) else None
    for table in program.origins(node.value) if isinstance(node, ast.Subscript) and key is not None else ():
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
        loops = program.around(one, ast.For)
        drawn = next((loop.iter for loop in loops if dotted(loop.target) == dotted(one.value)), None)
        name = dotted(stripped(drawn)) if drawn else ""
        given = program.argument(call, function, name) if name in parameters(function) else None
        return [(given, "")] if given is not None else []
    return []


def _taken(program: Program, node: ast.expr, known: Sequence[Guard], depth: int) -> Ways:
    """The loaders that an object of the project is made with, where its items are drawn."""
    found = program.definition_of(node)
    draws = found is not None and any(method(found, name) for name in ("__iter__", "__next__", "next"))
    given = arguments_of(node) if isinstance(node, ast.Call) and draws else ()
    return [(one, "") for one in given if loader_calls(program, one, known, depth - 1)]


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
    inner = stripped(value) if value is not None else None
    if inner is not None and (inner is not value or isinstance(inner, ast.Subscript)):
        return inner.id if isinstance(inner, ast.Name) else loader_name(program, inner, known)
    if isinstance(node, ast.Subscript) and dotted(node.value):
        key = _key(node, known)
        return f"{dotted(node.value)}[{_quoted(key)}]" if key is not None else ""
    return dotted(node)


# -- where values go ----------------------------------------------------------------


def _name(program: Program, node: ast.AST) -> Name:
    """The name that a node stands for, with its scope."""
    text = dotted(node.value if isinstance(node, ast.Subscript) else node)
    return None if text.startswith("self.") else program.scope_of(node), text


class Held(Declared):
    """The expressions (``seeds``) and the names, by their texts, that hold what comes of something."""

    program: Program
    seeds: frozenset[ast.AST]
    names: dict[str, set[Optional[Scope]]] = field(default_factory=dict)

    def holds(self, node: ast.AST) -> bool:
        """Whether an expression holds one of them."""
        for one in ast.walk(node):
            if one in self.seeds:
                return True
            if isinstance(one, (ast.Name, ast.Attribute)) and (scopes := self.names.get(dotted(one))):
                scope: ast.AST | None = None  # then its own scope, and those around that one
                while scope not in scopes and not isinstance(scope, ast.Module):
                    scope = self.program.scope_of(scope or one)
                if scope in scopes:
                    return True
        return False

    @property
    def every_name(self) -> list[Name]:
        """The names, each behind its scope."""
        return [(scope, text) for text, scopes in self.names.items() for scope in scopes]


def fed(
    program: Program, inside: Iterable[ast.AST], seeds: Iterable[ast.AST], names: Collection[Name] = ()
) -> Held:
    """What holds what comes from some expressions and names."""
    held = Held(program, frozenset(seeds))
    moves = [node for node in inside if isinstance(node, _MOVES)]
    count = -1
    while count != len(held.every_name):
        count = len(held.every_name)
        moved = (name for node in moves for name in _moved(program, node, held.holds))
        for scope, text in chain(names, moved):
            held.names.setdefault(text, set()).add(scope)
    return held


def _moved(program: Program, node: ast.AST, is_held: Callable[[ast.AST], bool]) -> Iterator[Name]:
    """The names that get a value by a node, where what it gives is held."""
    if not isinstance(node, ast.Call):
        value = getattr(node, "iter", None) or getattr(node, "value", None)
        targets = getattr(node, "targets", None) or [getattr(node, "target", node)]
        if value is not None and is_held(value):
            yield from (_name(program, one) for one in below(*targets) if is_stored(one))
    elif any(map(is_held, arguments_of(node))):
        if method_name(node) in ("append", "extend") and isinstance(node.func, ast.Attribute):
            yield _name(program, node.func.value)
        found = program.function_of(node)
        stars = any(isinstance(one, ast.Starred) for one in node.args)
        for name in parameters(found):
            value = program.argument(node, found, name)
            if stars if value is None else is_held(value):
                yield found, name


# -- what gives the batches ------------------------------------------------------------


class Drawn(Declared):
    """An expression that gives all batches one by one, or, where it is ``one``, the next each time.

    ``held`` holds what comes of it.
    """

    node: ast.expr
    one: bool
    held: Held


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
    if whole is not None and whole.held.holds(loss):
        return [whole]
    own = below(loop, *functions)
    found = []
    for node in inside:
        if node in own and isinstance(node, ast.Call) and _may_turn(program, node, loop, functions):
            if _draws(program, node) and not any(_draws(program, one) for one in below(*arguments_of(node))):
                found.append(Drawn(node, True, fed(program, inside, [node])))
    return [one for one in found if one.held.holds(loss)]


def is_step(node: ast.AST) -> bool:
    """Whether a node steps an optimizer."""
    func = node.func if isinstance(node, ast.Call) and method_name(node) == "step" else None
    return isinstance(func, ast.Attribute) and "sched" not in dotted(func.value).lower()


def is_of(program: Program, drawn: Drawn, node: ast.expr) -> bool:
    """Whether an expression names what gives a loop all of its batches, there or where it comes from."""
    given: ast.expr | None = drawn.node
    for _ in range(_STEPS):
        if given is None or not dotted(given):
            return False
        if _name(program, given) == _name(program, node):
            return True
        scope = program.scope_of(given)
        sites = program.call_sites(scope) if dotted(given) in parameters(scope) else []
        given = program.argument(sites[0], scope, dotted(given)) if len(sites) == 1 else None
    return False


def carried(program: Program, loop: Loop, calls: Sequence[ast.expr]) -> ast.expr | None:
    """What goes from one batch to the next: an argument of the model that its result sets anew; or None."""
    targets = items(program, loop) if isinstance(loop, ast.For) else set()
    for node in calls:
        statement, scope = program.statement_of(node), program.scope_of(node)
        call = next(program.around(node, ast.Call))
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
    places = fed(program, inside, (), items(program, loop))
    if not counts(loop.iter):
        return Drawn(inner, False, places) if _gives_batches(program, inner) else None
    for one in inside:
        if isinstance(one, ast.If) and places.holds(one.test):
            leaves = any(isinstance(each, LEAVING) for each in ast.walk(one))
            called = {method_name(each) or called_name(each) for each in calls_in(one)}
            if leaves or not called <= set(_SHOWS):  # it does more than to show something
                return None  # the ranks would not agree
    taken = {
        node: program.scope_of(node)
        for node in inside
        if isinstance(node, ast.Subscript) and places.holds(node.slice)
    }
    makers = (node for node in inside if program.definition_of(node) in taken.values())
    return Drawn(inner, False, fed(program, inside, (*taken, *makers)))


def items(program: Program, loop: ast.For) -> set[Name]:
    """The names of what a loop runs over, without what ``enumerate`` counts."""
    target: ast.expr = loop.target
    if "enumerate" in map(called_name, ast.walk(loop.iter)) and isinstance(target, ast.Tuple):
        target = target.elts[-1]
    return {_name(program, one) for one in below(target) if is_stored(one)}


def _gives_batches(program: Program, node: ast.expr, depth: int = _STEPS) -> bool:
    """Whether all that an expression may be is iterated in the same order on every rank."""

    def is_iterated(node: ast.expr) -> bool:
        if isinstance(node, ast.Subscript):
            return _gives_batches(program, node.value, depth - 1)
        if not isinstance(node, ast.Call):
            return isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.List, ast.Tuple))
        name, made = program.name(node) or dotted(node.func), program.definition_of(node) is not None
        if counts(node) or made or listed("loaders", name):
            return made and not counts(node)
        if name in ("zip", "list", "iter", "enumerate", "reversed", "sorted") and node.args:
            return all(_gives_batches(program, one, depth - 1) for one in node.args)
        known = name.partition(".")[0] in ("torch", "numpy", "random")
        return known or method_name(node) in ("split", "chunk")

    found = program.origins(node) if depth else []
    return bool(found) and all(map(is_iterated, found))


def _may_turn(program: Program, call: ast.Call, loop: Loop, functions: Sequence[ast.AST]) -> bool:
    """Whether what a call gives may differ between ranks: no condition asks for it."""
    for child, up in program.above(call):
        if isinstance(up, (ast.If, ast.While, ast.IfExp)) and child is up.test:
            return False
        if up is loop or up in functions:
            return up is not loop or child in loop.body
    return False


def _draws(program: Program, call: ast.AST, depth: int = _STEPS, seen: tuple[ast.AST, ...] = ()) -> bool:
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
    return any(isinstance(one, ast.Return) and one.value is not None for one in nodes) and any(
        (isinstance(one, ast.AugAssign) and dotted(one.target).startswith("self."))
        or _draws(program, one, depth - 1, (*seen, function))
        for one in nodes
    )
