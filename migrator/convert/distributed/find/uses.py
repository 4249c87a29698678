"""Where the wrapped model goes in the program, and what needs the model inside of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from migrator.convert.distributed.find.training import Training
from migrator.convert.draft import UncertainError
from migrator.convert.models import Home, Wrapped, home_of_target, receiving, uses
from migrator.convert.program import File, Program
from migrator.convert.syntax import argument, dotted, function_of, is_after, is_stored, parent, taker_of
from migrator.convert.values import call_sites
from migrator.project.distributed_names import listed


def follow(program: Program, wrapped: Wrapped, found: list[Training]) -> None:
    """Note what becomes of the uses. Raises UncertainError where training goes past the wrapper."""
    training = {one for each in found for one in each.inside}
    waiting = _family(program, wrapped.home)
    seen = list(waiting)
    while waiting:
        home = waiting.pop(0)
        for node in _wrapped_uses(home, wrapped):
            for use in _use(program, home, node, wrapped, training):
                more = [one for one in _family(program, use) if not any(one.same(old) for old in seen)]
                seen += more
                waiting += more
    for node, (file, _) in list(wrapped.inner.items()):
        wrapped.inner[node] = (file, _may_be_bare(program, file, node, wrapped, seen))
    if not wrapped.calls:
        raise UncertainError("model_not_called", wrapped.home.file, wrapped.behind, home=wrapped.home)


def _family(program: Program, home: Home) -> list[Home]:
    """A scope, and for ``self.name`` the classes that inherit the name."""
    if not isinstance(home.scope, ast.ClassDef):
        return [home]
    return [Home(file, one, home.text) for file, one in program.family(home.file, home.scope)]


def _use(program: Program, home: Home, node: ast.AST, wrapped: Wrapped, training: set[int]) -> Iterator[Home]:
    """Judge one use of the wrapped model; gives the scopes to which it hands it."""
    file, up, call = home.file, parent(node), taker_of(node)
    if is_stored(node):
        return
    if isinstance(up, ast.Attribute):
        if listed("same_when_wrapped", up.attr):
            return
        harmless = up.attr in ("state_dict", "load_state_dict")
        called = isinstance(parent(up), ast.Call) and parent(up).func is up
        if id(node) in training and called and not harmless:
            raise UncertainError("training_calls_method", file, up, home=home, up=up)
        wrapped.inner[node] = (file, False)
    elif isinstance(call, ast.Call):
        name = file.called(call) or dotted(call.func)
        given = list(receiving(program, file, call, node))
        if call.func is node:
            wrapped.calls += [(file, node)] if id(node) in training else []
        elif given:
            yield from given
        elif listed("need_the_model", name):
            if not _asks_for_wrapper(call):
                wrapped.inner[node] = (file, False)
        elif not listed("take_a_wrapped_model", name):
            wrapped.unclear.append((file, node))
    elif isinstance(up, ast.Return):
        for where, site in call_sites(program, function_of(node)):
            yield from _assigned(where, site, wrapped, (file, node))
    elif isinstance(up, ast.Assign) and up.value is node and len(up.targets) == 1:
        yield from _assigned(file, node, wrapped, (file, node))
    elif not isinstance(up, (ast.Compare, ast.Expr)):
        wrapped.unclear.append((file, node))


def _assigned(file: File, value: Any, wrapped: Wrapped, use: tuple[File, Any]) -> Iterator[Home]:
    """The scope in which an assignment keeps the model; where the value goes elsewhere, that is unclear."""
    assign = parent(value)
    home = home_of_target(file, assign.targets[0], assign) if isinstance(assign, ast.Assign) else None
    if home is not None:
        yield home
    elif not isinstance(assign, ast.Expr):
        wrapped.unclear.append(use)


def _asks_for_wrapper(call: ast.Call) -> bool:
    """Whether it is asked if a model is wrapped: ``hasattr(model, "module")``."""
    name = dotted(call.func)
    given = [ast.dump(one) for one in call.args[1:]]
    if name in ("hasattr", "getattr"):
        return "Constant(value='module')" in given[:1]
    return name == "isinstance" and any("DataParallel" in one for one in given)


def _may_be_bare(program: Program, file: File, node: ast.AST, wrapped: Wrapped, seen: list[Home]) -> bool:
    """Whether what is wrapped here when the program trains may be the bare model at other times."""
    if file is not program.entry:
        return True  # other programs may import the file
    here = Home(file, function_of(node), dotted(node))
    if not here.is_parameter or (wrapped.home.scope is here.scope and wrapped.home.text == here.text):
        return False
    given = [
        (where, argument(call, here.scope, here.text)) for where, call in call_sites(program, here.scope)
    ]
    known = {(id(home.file), id(one)) for home in seen for one in _wrapped_uses(home, wrapped)}
    return any(value is None or (id(where), id(value)) not in known for where, value in given)


def _wrapped_uses(home: Home, wrapped: Wrapped) -> list[Any]:
    """The uses of a scope's name in which the model is wrapped already."""
    found = uses(home)
    if home is not wrapped.home:
        return found
    scope = function_of(wrapped.behind)
    return [node for node in found if function_of(node) is not scope or is_after(node, wrapped.behind)]
