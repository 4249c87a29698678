"""The names that a model has in a program, and what is done with it under them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Optional

from migrator.convert.draft import Draft, UncertainError
from migrator.convert.program import (
    LOOPS,
    Home,
    Program,
    calls_in,
    dotted,
    is_after,
    is_stored,
    method_name,
)
from migrator.names.tree import FUNCTIONS, only_target
from migrator.project.distributed_use import listed

_MOST_GROUPS = 8


@dataclass
class Wrapped:
    """A model that is wrapped behind a statement, and what becomes of its uses.

    ``training``: the nodes that run in its training loops, None where these are not known: then nothing may
    go past the wrapper. ``in_part``: an optimizer takes only some of its parameters. ``inner``: the uses that
    need the model inside; True where it may be bare. ``unclear``: those that go where nothing is known of.
    ``calls``: those that train. ``since``: names that become those of the wrapped model by a statement.
    ``bare``: each ``model.module`` where it is not wrapped yet. ``prefixed``: its keys in checkpoints have a
    ``module.`` before them, but in branches that are taken ``unless`` these conditions hold.
    """

    home: Home
    behind: ast.stmt
    training: Optional[Collection[ast.AST]] = None
    in_part: bool = False
    since: list[tuple[Home, ast.stmt]] = field(default_factory=list)
    inner: dict[ast.expr, bool] = field(default_factory=dict)
    unclear: list[ast.expr] = field(default_factory=list)
    calls: list[ast.expr] = field(default_factory=list)
    bare: list[ast.Attribute] = field(default_factory=list)
    prefixed: bool = False
    unless: frozenset[str] = frozenset()


def has_prefix(program: Program, wrapped: Wrapped, node: ast.AST) -> bool:
    """Whether the keys of checkpoints have a ``module.`` before them where a model is used."""
    around = program.above(node)
    branches = (ast.dump(up.test) for child, up in around if isinstance(up, ast.If) and child in up.orelse)
    return wrapped.prefixed and not wrapped.unless.intersection(branches)


def use_the_model_inside(draft: Draft, wrapped: Wrapped, message: str) -> None:
    """Plan ``.module`` where the model itself is needed; report where that is not known."""
    for node, perhaps in wrapped.inner.items():
        text = draft.program.segment(node)
        code = f'getattr({text}, "module", {text})' if perhaps else f"{text}.module"
        draft.replace(node, code, message)
    for bare in wrapped.bare:
        draft.replace(bare, draft.program.segment(bare.value), "the model is not wrapped yet")
    for node in wrapped.unclear:
        draft.report("wrapped_here", node, text=dotted(node) or "what comes back")


def owners_of_parameters(node: ast.AST) -> list[ast.expr]:
    """What is asked for parameters in an expression: by ``parameters()``, or ``get_1x_lr_params()``."""
    asked = (call.func for call in calls_in(node) if "param" in method_name(call))
    return [func.value for func in asked if isinstance(func, ast.Attribute)]


def owners_behind(program: Program, given: ast.expr) -> list[ast.expr]:
    """The same, or else what is asked for them where the names in it come from."""
    found = owners_of_parameters(given)
    waiting = [given]
    for node in waiting if not found else ():  # grows: what the names of groups stand for
        names = [one for one in ast.walk(node) if isinstance(one, ast.Name) and not is_stored(one)]
        for origin in (each for name in names for each in program.origins(name)):
            found += owners_of_parameters(origin)
            if len(waiting) < _MOST_GROUPS and origin not in waiting:
                waiting.append(origin)
    return found


def unmoved(node: ast.AST | None) -> ast.AST | None:
    """The model in ``model.to(device)`` and ``nn.DataParallel(model)``."""
    while isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("to", "cuda"):
            node = node.func.value
        elif node.args and dotted(node.func).split(".")[-1] == "DataParallel":
            node = node.args[0]
        else:
            break
    return node


def free_models(program: Program, guard: ast.AST, wrapped: Iterable[tuple[Home, ast.stmt]]) -> list[str]:
    """Lines for the end of a script, before the process group goes: no wrapped model is left to hold it.

    ``guard`` is the main block, or the module; ``wrapped`` are the models, and the statements behind which
    they are wrapped. The models of functions are gone with these.
    """
    tree = program.file(guard).tree
    return [
        f"{home.text} = {home.text}.module"
        for home, behind in wrapped
        if home.scope is tree and program.parent(behind) in (tree, guard)
    ]


def wrapped_uses(program: Program, home: Home, wrapped: Wrapped) -> list[ast.expr]:
    """The uses of a scope's name in which it is the wrapped model's."""
    found = program.uses(home)
    for other, statement in wrapped.since:
        if other == home:
            scope = program.scope_of(statement)
            return [one for one in found if program.scope_of(one) is not scope or is_after(one, statement)]
    return found


def prepares(program: Program, node: ast.AST, depth: int = 6) -> bool:
    """Whether a use of the model belongs to its making: it is not called, and not handed to what calls it."""
    up, call = program.parent(node), program.taker_of(node)
    if is_stored(node):
        return True
    if isinstance(up, ast.Attribute):
        return up.attr != "forward"
    if not isinstance(call, ast.Call) or call.func is node:
        return False
    if program.definition_of(call) is None:  # of another package
        return not isinstance(program.statement_of(call), LOOPS)
    return all(
        depth and all(prepares(program, one, depth - 1) for one in program.uses(home))
        for home in program.receiving(call, node)
    )


# -- where the wrapped model goes -----------------------------------------


def follow(
    program: Program, wrapped: Wrapped, attribute: Callable[[Home, ast.expr, ast.Attribute], None]
) -> list[Home]:
    """Judge the uses of a wrapped model; gives all scopes in which it has a name.

    ``attribute`` judges ``model.something``. Raises UncertainError where training may go past the wrapper.
    """
    wrapped.since = [(wrapped.home, wrapped.behind)]
    waiting = _family(program, wrapped.home, wrapped)
    seen = list(waiting)
    while waiting:
        home = waiting.pop(0)
        for node in [*wrapped_uses(program, home, wrapped), *_of_objects(program, home, wrapped)]:
            up = program.parent(node)
            if isinstance(up, ast.Attribute):
                if not is_stored(node):
                    attribute(home, node, up)
                continue
            for use in _handed_on(program, home, node, wrapped):
                more = [one for one in _family(program, use, wrapped) if one not in seen]
                seen += more
                waiting += more
    return seen


def _family(program: Program, home: Home, wrapped: Wrapped) -> list[Home]:
    """A scope, and for ``self.name`` the classes that inherit the name."""
    if wrapped.training is None or not isinstance(home.scope, ast.ClassDef):
        return [home]
    return [Home(one, home.text) for one in program.family(home.scope)]


def _of_objects(program: Program, home: Home, wrapped: Wrapped) -> list[ast.expr]:
    """For ``self.model`` of a class, each ``trainer.model`` of its objects."""
    if wrapped.training is None or not isinstance(home.scope, ast.ClassDef):
        return []
    name = home.text.partition(".")[2]
    return [
        node
        for node in program.nodes(ast.Attribute)
        if node.attr == name and dotted(node.value) != "self"
        if home.scope in program.classes_of(node.value)
    ]


def _handed_on(program: Program, home: Home, node: ast.expr, wrapped: Wrapped) -> Iterator[Home]:
    """Judge a use of the wrapped model that asks for no attribute; gives the scopes to which it hands it."""
    up, call = program.parent(node), program.taker_of(node)
    strict = wrapped.training is None
    if is_stored(node):
        return
    if isinstance(call, ast.Call):
        yield from _argument(program, home, node, call, wrapped)
    elif isinstance(up, ast.Assign) and only_target(up) is not None and up.value is node:
        if strict and not isinstance(up.targets[0], ast.Name):
            _check_kept(program, node, wrapped)
        yield from _kept(program, up.targets[0], node, wrapped)
    elif isinstance(up, ast.Return) or (
        strict and isinstance(up, ast.Tuple) and isinstance(program.parent(up), ast.Return)
    ):
        if strict:
            _check_kept(program, node, wrapped)
        yield from _returned(program, node, up if isinstance(up, ast.Tuple) else None, wrapped)
    elif strict and isinstance(up, ast.Subscript):
        raise UncertainError("part_of_model", up, home=home)
    elif not isinstance(up, (ast.Compare, ast.Expr, ast.BoolOp, ast.If)):
        wrapped.unclear.append(node)


def _argument(
    program: Program, home: Home, node: ast.expr, call: ast.Call, wrapped: Wrapped
) -> Iterator[Home]:
    """The same for a use that is called, or is an argument of a call."""
    if call.func is node:
        if wrapped.training is None or node in wrapped.training:
            wrapped.calls.append(node)
        return
    given, name = program.receiving(call, node), program.name(call) or dotted(call.func)
    strict = wrapped.training is None
    if strict and isinstance(program.definition_of(call), ast.ClassDef):
        _check_kept(program, node, wrapped)
    if given:
        yield from given
    elif listed("need_the_model", name):
        if not _asks_for_wrapper(call):
            wrapped.inner[node] = False
    elif strict and name.endswith(".DataParallel"):
        raise UncertainError("data_parallel_too", call, home=home)
    elif not listed("take_a_wrapped_model", name):
        wrapped.unclear.append(node)


def _asks_for_wrapper(call: ast.Call) -> bool:
    """Whether it is asked if a model is wrapped: ``hasattr(model, "module")``."""
    name = dotted(call.func)
    given = [ast.dump(one) for one in call.args[1:]]
    if name in ("hasattr", "getattr"):
        return "Constant(value='module')" in given[:1]
    return name == "isinstance" and any("DataParallel" in one for one in given)


def _returned(
    program: Program, node: ast.expr, together: ast.Tuple | None, wrapped: Wrapped
) -> Iterator[Home]:
    """The scopes that get a value which a function returns, alone or in a tuple."""
    for site in program.call_sites(program.scope_of(node)):
        assign = program.parent(site)
        if isinstance(assign, ast.Expr):
            continue
        target: ast.expr | None = assign.targets[0] if isinstance(assign, ast.Assign) else None
        if together is not None:
            alike = isinstance(target, ast.Tuple) and len(target.elts) == len(together.elts)
            places = target.elts if alike and isinstance(target, ast.Tuple) else None
            target = places[together.elts.index(node)] if places else None
        yield from _kept(program, target, site if wrapped.training is None else node, wrapped, site)


def _kept(
    program: Program,
    target: ast.expr | None,
    node: ast.expr,
    wrapped: Wrapped,
    site: ast.expr | None = None,
) -> Iterator[Home]:
    """The scope in which a value, which comes to a ``site``, is kept under a name."""
    kept = program.home_of_target(target, site or node)
    if kept is None:
        wrapped.unclear.append(node)
        return
    if wrapped.training is None and isinstance(target, ast.Name):
        if all(kept != one for one, _ in wrapped.since):
            wrapped.since.append((kept, program.statement_of(target)))
    yield kept


def _check_kept(program: Program, node: ast.AST, wrapped: Wrapped) -> None:
    """What keeps the model elsewhere must do so when it is wrapped. Raises UncertainError."""
    scope = program.scope_of(node)
    if any(program.scope_of(statement) is scope for _, statement in wrapped.since):
        return
    if isinstance(scope, FUNCTIONS) and not only_called_after(program, scope, wrapped.behind):
        raise UncertainError("handed_on", wrapped.behind, home=wrapped.home)


def only_called_after(program: Program, function: ast.AST, behind: ast.stmt, depth: int = 4) -> bool:
    """Whether a function is called behind a statement only, as far as the calls are seen."""
    sites = program.call_sites(function)
    for call in sites:
        caller = program.scope_of(call)
        if caller is program.scope_of(behind):
            if not is_after(call, behind):
                return False
        elif not depth or not only_called_after(program, caller, behind, depth - 1):
            return False
    return bool(sites)
