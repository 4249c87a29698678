"""Other names by which a model could be trained than the one under which it is wrapped."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from migrator.convert.draft import UncertainError
from migrator.convert.models import Home, home_of, prepares, uses
from migrator.convert.program import File, Program
from migrator.convert.syntax import dotted, ids, is_after, is_stored, parameters
from migrator.convert.values import call_sites, definition_of
from migrator.names.tree import FUNCTIONS

_DEPTH = 6
_MAY_TRAIN = re.compile(r"partial$|trainer|engine|learner|runner|worker|solver|agent|train|fit", re.I)
_EVALUATES = re.compile(r"\.eval\(\)|\bno_grad\b|\binference_mode\b|\btrain\(False\)")


def check_before(program: Program, home: Home, behind: ast.stmt) -> None:
    """Before it is wrapped nothing may have got hold of the bare model that could train it."""
    function = home.file.function_of(behind)
    values = home.values()
    for value, _ in values:
        if not _is_only_name(value, home):
            raise UncertainError("other_name", home.file, value or behind, home=home)
    if not values and not home.is_parameter:
        raise UncertainError("origin_not_seen", home.file, behind, home=home)
    for node in uses(home):
        same = home.file.function_of(node) is function
        if is_stored(node):
            if same and is_after(node, behind):
                raise UncertainError("set_anew", home.file, node, home=home)
        elif same and not is_after(node, behind) and id(node) not in ids(behind):
            prepared = prepares(program, home.file, node) and not _is_kept(program, home.file, node)
            if not prepared and not _stays(home, node) and not evaluates(program, home.file, node):
                raise UncertainError("used_before", home.file, node, home=home)


def _is_only_name(value: Any, home: Home) -> bool:
    """Whether what a name is set to is new, or had that name before."""
    if isinstance(value, ast.IfExp):
        return _is_only_name(value.body, home) and _is_only_name(value.orelse, home)
    if isinstance(value, ast.Call) or dotted(value) == home.text:
        return True
    return isinstance(home.scope, ast.ClassDef) and _function_with_parameter(home.file, value) is not None


def _stays(home: Home, node: ast.AST) -> bool:
    """Whether a name is set to itself under a condition: ``model = model.cuda() if cuda else model``."""
    up = home.file.parent(node)
    while isinstance(up, ast.IfExp):
        up = home.file.parent(up)
    return isinstance(up, ast.Assign) and [dotted(one) for one in up.targets] == [home.text]


def _is_kept(program: Program, file: File, node: ast.AST) -> bool:
    """Whether the model goes to something of another package that, by its name, may train it later."""
    call = file.taker_of(node)
    if not isinstance(call, ast.Call) or definition_of(program, file, call) is not None:
        return False
    name = file.called(call) or dotted(call.func)
    return bool(_MAY_TRAIN.search(name)) and not name.startswith("torch.")


def _function_with_parameter(file: File, value: Any) -> Any:
    """The function of which a value is a parameter: who gives it is looked at, too."""
    function = file.function_of(value) if isinstance(value, ast.Name) else None
    return function if function is not None and value.id in parameters(function) else None


def check_outside(program: Program, home: Home, depth: int = _DEPTH) -> None:
    """Who hands in the model may not train it by itself: its name keeps the bare one."""
    for scope, name in _taken_from(home):
        sites = call_sites(program, scope)
        if not sites or not depth:
            raise UncertainError("caller_not_seen", home.file, scope, scope=scope, name=name, home=home)
        for where, call in sites:
            value = home.file.argument(call, scope, name)
            if isinstance(value, ast.Call):
                continue
            if not dotted(value) or dotted(value).count(".") > dotted(value).startswith("self."):
                raise UncertainError("argument_not_plain", where, call, scope=scope, name=name, home=home)
            outer = home_of(program, where, value, dotted(value))
            for node in uses(outer):
                mine = node is value or is_stored(node) or _goes_to(program, where, node, scope)
                harmless = mine or prepares(program, where, node) or evaluates(program, where, node)
                if not harmless:
                    raise UncertainError("not_the_wrapped", where, node, outer=outer)
            check_outside(program, outer, depth - 1)


def _goes_to(program: Program, file: File, node: ast.AST, scope: Any) -> bool:
    call = file.taker_of(node)
    found = definition_of(program, file, call)
    return found is not None and found[1] in (scope, file.class_of(scope))


def _taken_from(home: Home) -> Iterator[tuple[Any, str]]:
    """The functions, each with its parameter, through which a model comes to its name."""
    for value, _ in home.values() if isinstance(home.scope, ast.ClassDef) else ():
        function = _function_with_parameter(home.file, value)
        if isinstance(value, ast.Name) and function is not None:
            yield function, value.id
    if home.is_parameter:
        yield home.scope, home.text


def evaluates(program: Program, file: File, node: ast.AST) -> bool:
    """Whether a use stands in a function, or goes to one, that only evaluates."""
    call = file.taker_of(node)
    places = [(file, file.function_of(node))]
    found = definition_of(program, file, call) if getattr(call, "func", None) is not node else None
    if found is not None:
        places.append(found)
    for where, function in places:
        text = where.index.segment(function) if isinstance(function, FUNCTIONS) else ""
        if _EVALUATES.search(text) and ".backward(" not in text:
            return True
    return False
