"""The names that a model has in a program, and what is done with it under them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from migrator.convert.draft import Draft
from migrator.convert.program import File, Program
from migrator.convert.syntax import (
    LOOPS,
    Value,
    dotted,
    is_after,
    is_stored,
    method,
    method_name,
    parameters,
    walk_all,
)
from migrator.convert.values import definition_of
from migrator.names.tree import FUNCTIONS


@dataclass(frozen=True, eq=False)
class Home:
    """A scope in which the model has a name: a function, None for a margin, a class for ``self.name``.

    ``in_part``: an optimizer takes only some of its parameters.
    """

    file: File
    scope: Any
    text: str
    in_part: bool = False

    def same(self, other: Home) -> bool:
        """Whether both are the same name in the same scope."""
        return self.scope is other.scope and self.text == other.text and self.file is other.file

    @property
    def is_parameter(self) -> bool:
        """Whether the name is a parameter of a function."""
        return isinstance(self.scope, FUNCTIONS) and self.text in parameters(self.scope)

    def values(self) -> list[Value]:
        """What the name is set to."""
        if isinstance(self.scope, ast.ClassDef):
            return self.file.on_self(self.scope, self.text.partition(".")[2])
        return self.file.bindings(self.scope, self.text)


@dataclass
class Wrapped:
    """A model that is wrapped behind a statement, and what becomes of its uses.

    ``inner``: the uses that need the model inside; True where it may be bare. ``unclear``: those that go
    where nothing is known of. ``calls``: those that train. ``since``: names that become those of the wrapped
    model by a statement. ``bare``: each ``model.module`` where it is not wrapped yet. ``prefixed``: its keys
    in checkpoints have a ``module.`` before them, but in branches that are taken ``unless`` these conditions
    hold.
    """

    home: Home
    behind: Any
    since: list[tuple[Home, Any]] = field(default_factory=list)
    inner: dict[Any, tuple[File, bool]] = field(default_factory=dict)
    unclear: list[tuple[File, Any]] = field(default_factory=list)
    calls: list[tuple[File, Any]] = field(default_factory=list)
    bare: list[tuple[File, Any]] = field(default_factory=list)
    prefixed: bool = False
    unless: frozenset[str] = frozenset()


def has_prefix(wrapped: Wrapped, node: ast.AST) -> bool:
    """Whether the keys of checkpoints have a ``module.`` before them where a model is used."""
    around = wrapped.home.file.above(node)
    branches = (ast.dump(up.test) for child, up in around if isinstance(up, ast.If) and child in up.orelse)
    return wrapped.prefixed and not wrapped.unless.intersection(branches)


def use_the_model_inside(draft: Draft, wrapped: Wrapped, message: str) -> None:
    """Plan ``.module`` where the model itself is needed; report where that is not known."""
    for node, (file, perhaps) in wrapped.inner.items():
        text = file.index.segment(node)
        code = f'getattr({text}, "module", {text})' if perhaps else f"{text}.module"
        draft.replace(file, node, code, message)
    for file, node in wrapped.bare:
        draft.replace(file, node, file.index.segment(node.value), "the model is not wrapped yet")
    for file, node in wrapped.unclear:
        draft.report("wrapped_here", file, node, text=dotted(node) or "what comes back")


def parameters_in(node: ast.AST) -> list[Any]:
    """What ``parameters()`` is asked of inside an expression."""
    return [
        one.func.value for one in walk_all([node]) if method_name(one) in ("parameters", "named_parameters")
    ]


def home_of(program: Program, file: File, node: ast.AST, text: str) -> Home:
    """Where a name, or an attribute of ``self``, that a node holds is at home."""
    function = file.function_of(node)
    owner = file.class_of(function)
    if text.startswith("self.") and owner is not None:
        for where, one in program.family(file, owner):  # the class that sets it
            if where.on_self(one, text.partition(".")[2]):
                return Home(where, one, text)
        return Home(file, owner, text)
    if function is not None and text not in parameters(function) and not file.bindings(function, text):
        return Home(file, None, text)
    return Home(file, function, text)


def home_of_target(file: File, target: ast.expr | None, node: ast.AST) -> Home | None:
    """The scope and the name that a target of an assignment is, where they are plain."""
    text = dotted(target)
    owner = file.class_of(file.function_of(node))
    if isinstance(target, ast.Name):
        return Home(file, file.function_of(node), text)
    if text.startswith("self.") and text.count(".") == 1 and owner is not None:
        return Home(file, owner, text)
    return None


def unmoved(node: ast.AST) -> Any:
    """The model in ``model.to(device)`` and ``nn.DataParallel(model)``."""
    while isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("to", "cuda"):
            node = node.func.value
        elif node.args and dotted(node.func).split(".")[-1] == "DataParallel":
            node = node.args[0]
        else:
            break
    return node


def free_models(file: File, guard: ast.stmt | None, wrapped: Iterable[tuple[Home, Any]]) -> list[str]:
    """Lines for the end of a script, before the process group goes: no wrapped model is left to hold it.

    ``guard`` is the main block; ``wrapped`` are the models, and the statements behind which they are wrapped.
    The models of functions are gone with these.
    """
    blocks = (file.index.tree, guard)
    return [
        f"{home.text} = {home.text}.module"
        for home, behind in wrapped
        if home.file is file and home.scope is None and file.parent(behind) in blocks
    ]


def uses(home: Home) -> list[Any]:
    """The nodes by which a scope names the model, in the order of the lines."""
    found = []
    for node in home.file.nodes(ast.Attribute if "." in home.text else ast.Name):
        if dotted(node) != home.text:
            continue
        function = home.file.function_of(node)
        if isinstance(home.scope, ast.ClassDef):
            function = home.file.class_of(function)
        while function not in (home.scope, None) and not isinstance(function, ast.ClassDef):
            if home.text in parameters(function) or home.file.bindings(function, home.text):
                break
            function = home.file.function_of(function)
        if function is home.scope:
            found.append(node)
    return found


def wrapped_uses(home: Home, wrapped: Wrapped) -> list[Any]:
    """The uses of a scope's name in which it is the wrapped model's."""
    found, file = uses(home), home.file
    for other, statement in wrapped.since:
        if other.same(home):
            function = file.function_of(statement)
            return [one for one in found if file.function_of(one) is not function or is_after(one, statement)]
    return found


def receiving(program: Program, file: File, call: ast.Call, node: ast.AST) -> Iterator[Home]:
    """The project's function, and its parameter, that gets an argument of a call."""
    found = definition_of(program, file, call)
    if found is None:
        return
    where, function = found[0], found[1]
    if isinstance(function, ast.ClassDef):
        starts = [(place, method(owner, "__init__")) for place, owner in program.family(where, function)]
        where, start = next((one for one in starts if one[1]), (where, None))
        if start is None:
            return
        function = start
    for name in parameters(function):
        if file.argument(call, function, name) is node:
            yield Home(where, function, name)


def prepares(program: Program, file: File, node: ast.AST, depth: int = 6) -> bool:
    """Whether a use of the model belongs to its making: it is not called, and not handed to what calls it."""
    up, call = file.parent(node), file.taker_of(node)
    if is_stored(node):
        return True
    if isinstance(up, ast.Attribute):
        return up.attr != "forward"
    if not isinstance(call, ast.Call) or call.func is node:
        return False
    if definition_of(program, file, call) is None:  # of another package
        return not isinstance(next(up for _, up in file.above(call) if isinstance(up, ast.stmt)), LOOPS)
    return all(
        depth and all(prepares(program, scope.file, one, depth - 1) for one in uses(scope))
        for scope in receiving(program, file, call, node)
    )
