"""Where the wrapped model goes in the program, and what needs the model inside of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from migrator.convert.distributed.find.parallel import CHECKPOINTS
from migrator.convert.distributed.find.training import Training
from migrator.convert.draft import UncertainError
from migrator.convert.models import Home, Wrapped, has_prefix, home_of_target, receiving, wrapped_uses
from migrator.convert.program import File, Program
from migrator.convert.syntax import dotted, is_stored, method
from migrator.convert.values import call_sites, classes_of, definition_of
from migrator.project.distributed_use import listed


def follow(program: Program, wrapped: Wrapped, found: list[Training]) -> None:
    """Note what becomes of the uses. Raises UncertainError where training goes past the wrapper."""
    training = {one for each in found for one in each.inside}
    wrapped.since = [(wrapped.home, wrapped.behind)]
    waiting = _family(program, wrapped.home)
    seen = list(waiting)
    while waiting:
        home = waiting.pop(0)
        used = [(home.file, node) for node in wrapped_uses(home, wrapped)]
        for file, node in [*used, *_of_objects(program, home)]:
            for use in _use(program, replace(home, file=file), node, wrapped, training):
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


def _of_objects(program: Program, home: Home) -> list[tuple[File, Any]]:
    """For ``self.model`` of a class, each ``trainer.model`` of its objects."""
    if not isinstance(home.scope, ast.ClassDef):
        return []
    name = home.text.partition(".")[2]
    return [
        (file, node)
        for file, node in program.nodes(ast.Attribute)
        if node.attr == name and dotted(node.value) != "self"
        if any(owner is home.scope for _, owner in classes_of(program, file, node.value))
    ]


def _use(program: Program, home: Home, node: ast.AST, wrapped: Wrapped, training: set[int]) -> Iterator[Home]:
    """Judge one use of the wrapped model; gives the scopes to which it hands it."""
    file = home.file
    up, call = file.parent(node), file.taker_of(node)
    if is_stored(node):
        return
    if isinstance(up, ast.Attribute):
        inside = up.attr == "module" and isinstance(file.parent(up), ast.Attribute)
        asked = file.parent(up) if inside else up
        if listed("same_when_wrapped", asked.attr) or (
            asked.attr in CHECKPOINTS and has_prefix(wrapped, node)
        ):
            return
        called = isinstance(file.parent(asked), ast.Call) and file.parent(asked).func is asked
        if id(node) in training and called and _computes(program, file, node, asked.attr):
            raise UncertainError("training_calls_method", file, asked, home=home, up=asked)
        if not inside:
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
        for where, site in call_sites(program, file.function_of(node)):
            yield from _assigned(where, site, wrapped, (file, node))
    elif isinstance(up, ast.Assign) and up.value is node and len(up.targets) == 1:
        yield from _assigned(file, node, wrapped, (file, node))
    elif not isinstance(up, (ast.Compare, ast.Expr)):
        wrapped.unclear.append((file, node))


def _computes(program: Program, file: File, node: Any, name: str) -> bool:
    """Whether a method of the model may compute with what it trains."""
    if name in CHECKPOINTS:
        return False
    found = definition_of(program, file, ast.Call(ast.Attribute(node, name, ast.Load()), [], []))
    return found is None or _uses_parts(*found)


def _uses_parts(file: File, function: Any, depth: int = 4) -> bool:
    """Whether a method uses what was made by calls, as layers and parameters are, or hands the object on."""
    owner = file.class_of(function)
    if owner is None or not depth:
        return True
    for node in ast.walk(function):
        if not isinstance(node, ast.Name) or node.id != "self" or is_stored(file.parent(node)):
            continue
        part = file.parent(node)
        if not isinstance(part, ast.Attribute):
            return True
        own = method(owner, part.attr)
        if own is not None and own is not function and not _uses_parts(file, own, depth - 1):
            continue
        values = file.on_self(owner, part.attr)
        made = any(value is None or isinstance(value, ast.Call) for value, _ in values)
        asks = (
            part.attr in ("parameters", "training")
            and dotted(getattr(file.taker_of(file.parent(part)), "func", None)) == "next"
        )
        if not asks and (made or not values):
            return True
    return False


def _assigned(file: File, value: Any, wrapped: Wrapped, use: tuple[File, Any]) -> Iterator[Home]:
    """The scope in which an assignment keeps the model; where the value goes elsewhere, that is unclear."""
    assign = file.parent(value)
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
    here = Home(file, file.function_of(node), dotted(node))
    if not here.is_parameter or (wrapped.home.scope is here.scope and wrapped.home.text == here.text):
        return False
    given = [
        (where, file.argument(call, here.scope, here.text)) for where, call in call_sites(program, here.scope)
    ]
    known = {(id(home.file), id(one)) for home in seen for one in wrapped_uses(home, wrapped)}
    return any(value is None or (id(where), id(value)) not in known for where, value in given)
