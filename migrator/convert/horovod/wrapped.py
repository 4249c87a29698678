"""Horovod's model goes into DistributedDataParallel: no training may go past it, under whatever name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from migrator.convert.draft import UncertainError
from migrator.convert.horovod.calls import table
from migrator.convert.models import Wrapped, only_called_after, prepares
from migrator.convert.program import (
    Home,
    Program,
    below,
    dotted,
    is_after,
    is_main_guard,
    is_stored,
    parameters,
)
from migrator.names.tree import FUNCTIONS, Function

_DEPTH = 6
_MOVES = ("cuda", "to", "npu")
_MAY_TRAIN = re.compile(r"partial$|trainer|engine|learner|runner|worker|solver|agent|train|fit", re.I)
_EVALUATES = re.compile(r"\.eval\(\)|\bno_grad\b|\binference_mode\b|\btrain\(False\)")


def follow(program: Program, home: Home, behind: ast.stmt) -> Wrapped:
    """What becomes of the uses of a model that is wrapped behind a statement.

    Raises UncertainError where some of the training might go past the wrapper.
    """
    _check_before(program, home, behind)
    _check_outside(program, home)
    wrapped = Wrapped(program, home, behind)
    seen = wrapped.follow(lambda one, node, up: _attribute(program, one, node, up, wrapped))
    for one in seen:
        if one.text.startswith("self."):
            _from_outside(program, one, wrapped)
    if not wrapped.calls:
        raise UncertainError("call_not_seen", behind, home=home)
    conditional = _is_conditional(program, behind)
    for node, perhaps in list(wrapped.inner.items()):
        wrapped.inner[node] = perhaps or conditional or _may_be_bare(program, node, wrapped, seen)
    return wrapped


def _attribute(program: Program, home: Home, node: ast.expr, up: ast.Attribute, wrapped: Wrapped) -> None:
    """Judge ``model.something``."""
    chain: ast.expr = up
    last = up.attr
    above = program.parent(chain)
    while isinstance(above, (ast.Attribute, ast.Subscript)) and above.value is chain:
        chain, above = above, program.parent(above)
        last = chain.attr if isinstance(chain, ast.Attribute) else last
    called = isinstance(above, ast.Call) and above.func is chain
    if up.attr in _MOVES and called and chain is up:
        scope = program.scope_of(node)
        here = scope is program.scope_of(wrapped.behind)
        if here or only_called_after(program, scope, wrapped.behind):
            raise UncertainError("moved_behind", up, home=home)
        return  # it is the bare model's, or moves the one inside
    if up.attr in table("same_when_wrapped") and chain is up:
        if up.attr == "forward":
            wrapped.calls.append(node)
        if not (called and above is not None and isinstance(program.parent(above), ast.Attribute)):
            return
    given = isinstance(above, ast.Call) and called and bool(above.args or above.keywords)
    computes = given and last not in {*table("module_methods"), *table("same_when_wrapped")}
    if computes and not {"weight", "bias", "data"} & set(dotted(chain).split(".")):
        if not _evaluates(program, node):
            raise UncertainError("submodule_called", above, home=home, last=last, called=dotted(chain))
    wrapped.inner[node] = False


def _from_outside(program: Program, home: Home, wrapped: Wrapped) -> None:
    """``trainer.model.state_dict()``: an attribute of another object that may be the wrapped model."""
    mine = program.uses(home)
    for node in program.nodes(ast.Attribute):
        if node.attr == home.text.partition(".")[2] and node not in mine and not is_stored(node):
            up = program.parent(node)
            if isinstance(up, ast.Attribute) and up.attr in ("state_dict", "load_state_dict"):
                wrapped.inner[node] = True


def _is_conditional(program: Program, behind: ast.stmt) -> bool:
    """Whether there are ways past the statement, on which the model stays bare."""
    for _, up in program.above(behind):
        if isinstance(up, FUNCTIONS):
            break
        if not is_main_guard(up) and not isinstance(up, (ast.With, ast.Module)):
            return True
    return False


def _may_be_bare(program: Program, node: ast.expr, wrapped: Wrapped, seen: list[Home]) -> bool:
    """Whether what is wrapped when the program trains may be the bare model at other times."""
    scope, text = program.scope_of(node), dotted(node)
    if wrapped.is_made_in(scope):
        return False
    if isinstance(scope, ast.Module):
        return program.file(node) is not program.file(wrapped.behind)
    if text not in parameters(scope):
        return not only_called_after(program, scope, wrapped.behind)
    given = wrapped.bare_arguments(node, seen)
    return not given or any(given)


# -- other names by which the model could be trained ------------------------


def _check_before(program: Program, home: Home, behind: ast.stmt) -> None:
    """Before it is wrapped nothing may have got hold of the bare model that could train it."""
    scope, values = program.scope_of(behind), program.values(*home)
    for value, _ in values:
        if not _is_only_name(program, value, home):
            raise UncertainError("other_name", value or behind, home=home)
    if not values and not home.is_parameter:
        raise UncertainError("origin_not_seen", behind, home=home)
    for node in program.uses(home):
        if program.scope_of(node) is not scope:
            continue
        if is_stored(node):
            if is_after(node, behind):
                raise UncertainError("set_anew", node, home=home)
        elif not is_after(node, behind) and node not in below(behind):
            prepared = prepares(program, node) and not _is_kept(program, node)
            if not prepared and not _stays(program, home, node) and not _evaluates(program, node):
                raise UncertainError("used_before", node, home=home)


def _is_only_name(program: Program, value: ast.expr | None, home: Home) -> bool:
    """Whether what a name is set to is new, or had that name before."""
    if isinstance(value, ast.IfExp):
        return _is_only_name(program, value.body, home) and _is_only_name(program, value.orelse, home)
    if isinstance(value, ast.Call) or dotted(value) == home.text:
        return True
    return isinstance(home.scope, ast.ClassDef) and _function_with_parameter(program, value) is not None


def _stays(program: Program, home: Home, node: ast.expr) -> bool:
    """Whether a name is set to itself under a condition: ``model = model.cuda() if cuda else model``."""
    up = program.parent(node)
    while isinstance(up, ast.IfExp):
        up = program.parent(up)
    return isinstance(up, ast.Assign) and [dotted(one) for one in up.targets] == [home.text]


def _is_kept(program: Program, node: ast.AST) -> bool:
    """Whether the model goes to something of another package that, by its name, may train it later."""
    call = program.taker_of(node)
    if not isinstance(call, ast.Call) or program.definition_of(call) is not None:
        return False
    name = program.name(call) or dotted(call.func)
    return bool(_MAY_TRAIN.search(name)) and not name.startswith("torch.")


def _function_with_parameter(program: Program, value: ast.expr | None) -> Function | None:
    """The function of which a value is a parameter: who gives it is looked at, too."""
    scope = program.scope_of(value) if isinstance(value, ast.Name) else None
    return scope if isinstance(scope, FUNCTIONS) and dotted(value) in parameters(scope) else None


def _check_outside(program: Program, home: Home, depth: int = _DEPTH) -> None:
    """Who hands in the model may not train it by itself: its name keeps the bare one."""
    for scope, name in _taken_from(program, home):
        sites = program.call_sites(scope)
        if not sites or not depth:
            raise UncertainError("caller_not_seen", scope, scope=scope, name=name, home=home)
        for call in sites:
            value = program.argument(call, scope, name)
            if isinstance(value, ast.Call):
                continue
            text = dotted(value)
            if value is None or not text or text.count(".") > text.startswith("self."):
                raise UncertainError("argument_not_plain", call, scope=scope, name=name, home=home)
            outer = program.home_of(value, text)
            owners = {scope, program.class_of(scope) or scope}
            for node in program.uses(outer):
                goes_to = program.definition_of(program.taker_of(node))
                mine = node is value or is_stored(node) or goes_to in owners
                if not (mine or prepares(program, node) or _evaluates(program, node)):
                    raise UncertainError("not_the_wrapped", node, outer=outer)
            _check_outside(program, outer, depth - 1)


def _taken_from(program: Program, home: Home) -> Iterator[tuple[ast.AST, str]]:
    """The functions, each with its parameter, through which a model comes to its name."""
    for value, _ in program.values(*home) if isinstance(home.scope, ast.ClassDef) else ():
        function = _function_with_parameter(program, value)
        if function is not None:
            yield function, dotted(value)
    if home.is_parameter:
        yield home.scope, home.text


def _evaluates(program: Program, node: ast.AST) -> bool:
    """Whether a use stands in a function, or goes to one, that only evaluates."""
    call = program.taker_of(node)
    called = program.function_of(call) if isinstance(call, ast.Call) and call.func is not node else None
    for function in (program.scope_of(node), called):
        text = program.segment(function) if isinstance(function, FUNCTIONS) else ""
        if _EVALUATES.search(text) and ".backward(" not in text:
            return True
    return False
