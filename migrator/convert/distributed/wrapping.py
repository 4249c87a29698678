"""Where the model is wrapped, and what then holds the wrapped one."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from migrator.convert.distributed.training import Training
from migrator.convert.draft import UncertainError
from migrator.convert.models import Home, lasts, unmoved
from migrator.convert.program import File, Program
from migrator.convert.syntax import (
    FUNCTIONS,
    argument,
    class_of,
    dotted,
    function_of,
    parameters,
    parent,
    taker_of,
)
from migrator.convert.values import call_sites, definition_of
from migrator.project.distributed_names import listed

_DEPTH = 6


@dataclass(frozen=True, eq=False)
class Wrapping:
    """The model is wrapped behind a statement of its scope."""

    home: Home
    behind: Any


@dataclass
class Held:
    """What becomes of the uses of the wrapped model.

    ``inner``: those that need the model itself, True where it may be unwrapped as well. ``unclear``:
    those that go where nothing is known of.
    """

    inner: dict[Any, tuple[File, bool]] = field(default_factory=dict)
    unclear: list[tuple[File, Any]] = field(default_factory=list)
    calls: int = 0


def uses(home: Home) -> list[Any]:
    """The nodes by which a scope names the model, in the order of the lines."""
    found = []
    for node in home.file.nodes(ast.Attribute if "." in home.text else ast.Name):
        if dotted(node) != home.text:
            continue
        function = function_of(node)
        if isinstance(home.scope, ast.ClassDef):
            if class_of(function) is home.scope:
                found.append(node)
            continue
        while function is not home.scope and function is not None:
            if home.text in parameters(function) or home.file.bindings(function, home.text):
                break
            function = function_of(function)
        if function is home.scope:
            found.append(node)
    return found


def wrapping(program: Program, ways: list[Home], found: list[Training]) -> Wrapping:
    """Where to wrap: behind what prepares the model, before what uses it. Raises UncertainError."""
    home = ways[0]
    if not any(_moved(program, one) for one in ways):
        for inner in _inwards(program, home):
            if lasts(program, inner, found) and _moved(program, inner):
                return wrapping(program, [inner], found)
        raise UncertainError("model_not_on_device", home.file, (uses(home) or [None])[0], home=home)
    scope = home.scope
    if isinstance(scope, ast.ClassDef):
        stored = [
            function_of(node)
            for node in uses(home)
            if isinstance(node.ctx, ast.Store) and _is_method(node, scope)
        ]
        if len({id(one) for one in stored}) != 1:
            raise UncertainError("model_in_methods", home.file, scope, home=home)
        scope = stored[0]
    block: Any = scope.body if scope is not None else home.file.index.tree.body
    own = {id(node) for node in uses(home) if function_of(node) is scope}
    while True:
        holding = [one for one in block if own & _ids(one)]
        inside = _only_block(holding[0]) if len(holding) == 1 else None
        if inside is None:
            break
        block = inside
    behind = None
    loops = {id(one.batches) for one in found}
    trains = {id(function) for one in found for _, function in one.scopes if function is not None}
    known = home.text in parameters(scope) if scope is not None else False
    for statement in block:
        if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
            continue
        if any(id(one) in trains for one in _called(program, home.file, statement)):
            break  # functions may use the name themselves
        mentioned = [node for node in ast.walk(statement) if id(node) in own]
        if not mentioned:
            continue
        if loops & _ids(statement) or not all(
            prepares(program, home.file, node, _DEPTH) for node in mentioned
        ):
            break
        behind = statement
        known = known or any(isinstance(getattr(node, "ctx", None), ast.Store) for node in mentioned)
    if behind is None or not known or not home.file.own_line(behind):
        raise UncertainError("model_not_ready", home.file, (uses(home) or [None])[0], home=home)
    return Wrapping(home, behind)


def _called(program: Program, file: File, statement: Any) -> Iterator[Any]:
    """The project's functions that a statement calls."""
    for node in ast.walk(statement):
        found = definition_of(program, file, node) if isinstance(node, ast.Call) else None
        if found:
            yield found[1]


def _inwards(program: Program, home: Home, depth: int = _DEPTH) -> Iterator[Home]:
    """The scopes to which the model is handed: functions, and classes that keep it."""
    for node in uses(home) if depth else ():
        call = taker_of(node)
        if not isinstance(call, ast.Call):
            continue
        for where, function, name in receiving(program, home.file, call, node):
            yield Home(where, function, name)
            owner = class_of(function)
            for assign in where.nodes(ast.Assign) if owner else ():
                kept = dotted(assign.targets[0])
                if function_of(assign) is function and dotted(unmoved(assign.value)) == name:
                    if kept.startswith("self.") and kept.count(".") == 1:
                        yield Home(where, owner, kept)
            if owner is not None:
                yield from _inwards(
                    program, Home(where, function, name), depth - 1
                )  # super().__init__(model)


def _is_method(node: Any, owner: ast.ClassDef) -> bool:
    return class_of(function_of(node)) is owner


def _ids(node: Any) -> set[int]:
    return {id(one) for one in ast.walk(node)}


def _only_block(statement: Any) -> list[Any] | None:
    """The body of a statement that only encloses: ``if __name__ == …``, ``with``, ``try``."""
    if isinstance(statement, ast.If) and not statement.orelse and "__name__" in ast.dump(statement.test):
        return statement.body
    if isinstance(statement, (ast.With, ast.Try)):
        return statement.body
    return None


def _moved(program: Program, home: Home) -> bool:
    """Whether the model is put on a device in this scope, or comes from a function that does it."""
    for node in uses(home):
        up = node.parent
        if isinstance(up, ast.Attribute) and _is_move(parent(up)):
            return True
    if isinstance(home.scope, ast.ClassDef):
        values = home.file.on_self(home.scope, home.text.partition(".")[2])
    else:
        values = home.file.bindings(home.scope, home.text)
    for value, _ in values:
        for call in ast.walk(value) if value is not None else ():
            if _is_move(call):
                return True
            found = definition_of(program, home.file, call) if isinstance(call, ast.Call) else None
            if found and isinstance(found[1], FUNCTIONS) and any(map(_is_move, ast.walk(found[1]))):
                return True
    return False


def _is_move(node: Any) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    if node.func.attr == "cuda":
        return True
    given = [*node.args, *(keyword.value for keyword in node.keywords)]
    return node.func.attr == "to" and not all(
        "float" in dotted(one) or "dtype" in dotted(one) for one in given
    )


def prepares(program: Program, file: File, node: Any, depth: int) -> bool:
    """Whether a use of the model belongs to its making: it is not called, and not handed to what calls it."""
    up = node.parent
    if isinstance(node.ctx, ast.Store):
        return True
    if isinstance(up, ast.Attribute):
        return up.attr != "forward"
    call = parent(up) if isinstance(up, ast.keyword) else up
    if not isinstance(call, ast.Call) or call.func is node:
        return False
    if definition_of(program, file, call) is None:
        return not _loops(call)  # of another package
    for where, function, name in receiving(program, file, call, node):
        scope = Home(where, function, name)
        if not depth or not all(prepares(program, where, one, depth - 1) for one in uses(scope)):
            return False
    return True


def _loops(node: Any) -> bool:
    while not isinstance(node, ast.stmt):
        node = node.parent
    return isinstance(node, (ast.For, ast.While))


def receiving(program: Program, file: File, call: ast.Call, node: Any) -> Iterator[tuple[File, Any, str]]:
    """The project's function, its file, and its parameter, that gets an argument of a call."""
    found = definition_of(program, file, call)
    if found is None:
        return
    where, function = found
    if isinstance(function, ast.ClassDef):
        inits = [
            (place, one)
            for place, owner in program.family(where, function)
            for one in owner.body
            if isinstance(one, FUNCTIONS) and one.name == "__init__"
        ]
        if not inits:
            return
        where, function = inits[0]
    for name in parameters(function):
        if argument(call, function, name) is node:
            yield where, function, name


def held(program: Program, wrapped: Wrapping, found: list[Training]) -> Held:
    """Follow the wrapped model through the program.

    Raises UncertainError where training goes past the wrapper.
    """
    result = Held()
    start = wrapped.home
    training = {one for each in found for one in each.inside}
    waiting = seen = _family(program, start)
    while waiting:
        home = waiting[0]
        waiting = waiting[1:]
        for node in _wrapped_uses(home, wrapped):
            for use in _use(program, home, node, result, training):
                more = [one for one in _family(program, use) if not any(one.same(old) for old in seen)]
                seen = seen + more
                waiting = waiting + more
    for node, (file, _) in list(result.inner.items()):
        result.inner[node] = (file, _may_be_bare(program, file, node, wrapped, seen))
    return result


def _family(program: Program, home: Home) -> list[Home]:
    """A scope, and for ``self.name`` the classes that inherit the name."""
    if not isinstance(home.scope, ast.ClassDef):
        return [home]
    return [Home(file, one, home.text) for file, one in program.family(home.file, home.scope)]


def _use(program: Program, home: Home, node: Any, result: Held, training: set[int]) -> Iterator[Home]:
    """Judge one use of the wrapped model; gives the scopes to which it hands it."""
    file, up = home.file, node.parent
    if isinstance(node.ctx, ast.Store):
        return
    if isinstance(up, ast.Attribute):
        if listed("same_when_wrapped", up.attr):
            return
        harmless = up.attr in ("state_dict", "load_state_dict")
        call = parent(up)
        if id(node) in training and isinstance(call, ast.Call) and call.func is up and not harmless:
            raise UncertainError("training_calls_method", file, up, home=home, up=up)
        result.inner[node] = (file, False)
        return
    call = parent(up) if isinstance(up, ast.keyword) else up
    if isinstance(call, ast.Call):
        if call.func is node:
            result.calls += id(node) in training
            return
        name = file.called(call) or dotted(call.func)
        given = list(receiving(program, file, call, node))
        if given:
            for where, function, parameter in given:
                yield Home(where, function, parameter)
        elif listed("need_the_model", name):
            if not _asks_for_wrapper(call):
                result.inner[node] = (file, False)
        elif not listed("take_a_wrapped_model", name):
            result.unclear.append((file, node))
        return
    if isinstance(up, ast.Assign) and up.value is node and len(up.targets) == 1:
        home_of = _assigned(file, up)
        if home_of is not None:
            yield home_of
            return
    if isinstance(up, ast.Return):
        for where, site in call_sites(program, function_of(node)):
            assign = parent(site)
            home_of = _assigned(where, assign) if isinstance(assign, ast.Assign) else None
            if home_of is not None:
                yield home_of
            elif not isinstance(assign, ast.Expr):
                result.unclear.append((file, node))
        return
    if not isinstance(up, (ast.Compare, ast.Expr)):
        result.unclear.append((file, node))


def _asks_for_wrapper(call: ast.Call) -> bool:
    """Whether it is asked if a model is wrapped: ``hasattr(model, "module")``."""
    name = dotted(call.func)
    given = [ast.dump(one) for one in call.args[1:]]
    if name in ("hasattr", "getattr"):
        return "Constant(value='module')" in given[:1]
    return name == "isinstance" and any("DataParallel" in one for one in given)


def _assigned(file: File, assign: ast.Assign) -> Home | None:
    """The scope and the name to which a model is assigned, where they are plain."""
    target = assign.targets[0]
    text = dotted(target)
    owner = class_of(function_of(assign))
    if isinstance(target, ast.Name):
        return Home(file, function_of(assign), text)
    if text.startswith("self.") and text.count(".") == 1 and owner is not None:
        return Home(file, owner, text)
    return None


def _may_be_bare(program: Program, file: File, node: Any, wrapped: Wrapping, seen: list[Home]) -> bool:
    """Whether what is wrapped here when the program trains may be the bare model at other times."""
    if file is not program.entry:
        return True  # other programs may import the file
    function = function_of(node)
    text = dotted(node)
    if function is None or text not in parameters(function):
        return False
    if wrapped.home.scope is function and wrapped.home.text == text:
        return False
    for where, call in call_sites(program, function):
        given = argument(call, function, text)
        if given is None or not any(
            given is one for home in seen if home.file is where for one in _wrapped_uses(home, wrapped)
        ):
            return True
    return False


def _wrapped_uses(home: Home, wrapped: Wrapping) -> list[Any]:
    """The uses of a scope's name in which the model is wrapped already."""
    found = uses(home)
    if home is not wrapped.home:
        return found
    scope = function_of(wrapped.behind)
    end = (wrapped.behind.end_lineno, wrapped.behind.end_col_offset)
    return [node for node in found if function_of(node) is not scope or (node.lineno, node.col_offset) > end]
