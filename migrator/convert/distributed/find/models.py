"""The models that are trained, and where each is wrapped."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from migrator.convert.distributed.find.training import Training
from migrator.convert.draft import UncertainError
from migrator.convert.models import Home, Wrapped, home_of, prepares, receiving, unmoved, uses
from migrator.convert.program import File, Program
from migrator.convert.syntax import (
    LOOPS,
    dotted,
    ids,
    is_main_guard,
    is_stored,
    last_name,
    method_name,
    stored_below,
    walk_all,
)
from migrator.convert.values import call_sites, definition_of, origins
from migrator.names.tree import FUNCTIONS, arguments_of

_OPTIMIZER = re.compile(r"(?:Adam|SGD|Lamb|LAMB|LARS|Lion|RMSprop|Adafactor|Optimizer|AdamW|Adagrad)\w*$")
_DEPTH = 8


def models_to_wrap(program: Program, found: list[Training], target: str) -> list[Wrapped]:
    """The models of the optimizers, and where to wrap each.

    ``target`` is the one model's name where the user gives it. Raises UncertainError for an optimizer whose
    model cannot be told, where there is none, and where a model has no plain place.
    """
    chosen: list[list[Home]] = []
    candidates = list(_homes(program))
    if not candidates:
        raise UncertainError("no_optimizer")
    for ways in candidates:
        kept = [home for home in ways if _lasts(program, home, found)]
        if target:
            kept = [home for home in kept if target in (home.text, home.text.partition(".")[2])]
        if not kept and not target:
            raise UncertainError("model_elsewhere", ways[0].file, ways[0].scope, home=ways[0])
        if kept and not any(kept[0].same(one[0]) for one in chosen):
            chosen.append([replace(kept[0], in_part=ways[0].in_part), *ways])
    if not chosen:
        raise UncertainError("no_such_model", candidates[0][0].file, target=target)
    return [_wrapped(program, ways, found) for ways in chosen]


def _homes(program: Program) -> Iterator[list[Home]]:
    """For each model of each optimizer the scopes in which it has a name, the innermost first."""
    for file, call in program.nodes(ast.Call):
        name = file.called(call)
        own = name.startswith("torch.optim.") and ".lr_scheduler." not in name and ".swa_utils." not in name
        if not (own and name.split(".")[-1][0].isupper()) and not (
            _OPTIMIZER.match(last_name(call)) and _owners(call)
        ):
            continue
        bases = _bases(program, file, call)
        if not bases:
            raise UncertainError("optimizer_without_model", file, call)
        each: dict[tuple[int, str], Home] = {}
        for where, node, text in bases:
            home = replace(home_of(program, where, node, text), in_part=dotted(node) != text)
            each.setdefault((id(where), text), home)
        yield from (list(_outwards(program, home, _DEPTH)) for home in each.values())


def _bases(program: Program, file: File, call: ast.Call) -> list[tuple[File, Any, str]]:
    """The models whose parameters an optimizer gets, with the names in which they are; none if not plain."""
    places = [(file, node) for node in _owners(call)]
    waiting = [(file, one) for one in call.args[:1]]
    for where, given in waiting if not places else ():  # grows: what the names of groups stand for
        names = [node for node in ast.walk(given) if isinstance(node, ast.Name) and not is_stored(node)]
        for place, origin in (found for name in names for found in origins(program, where, name)):
            places += [(place, node) for node in _owners(origin)]
            if len(waiting) < _DEPTH and all(origin is not one for _, one in waiting):
                waiting.append((place, origin))
    for where, node in list(places):
        function = file.function_of(node)
        if dotted(node) == "self" and function is not None:  # a method of the model makes its optimizer
            sites = ((place, site.func) for place, site in call_sites(program, function))
            places += [(place, func.value) for place, func in sites if isinstance(func, ast.Attribute)]
            places.remove((where, node))
    found = []
    for where, node in places:
        parts = dotted(node).split(".")
        found.append((where, node, ".".join(parts[:2] if parts[0] == "self" else parts[:1])))
    return found if all(text and text != "self" for _, _, text in found) else []


def _owners(node: ast.AST) -> list[Any]:
    """What is asked for parameters in an expression: by ``parameters()``, or ``get_1x_lr_params()``."""
    return [one.func.value for one in walk_all([node]) if "param" in method_name(one)]


def _outwards(program: Program, home: Home, depth: int) -> Iterator[Home]:
    """A scope, and those from which the model comes to it."""
    yield home
    file = home.file
    given: list[tuple[File, Any]] = []
    if home.is_parameter:
        given = [(w, file.argument(c, home.scope, home.text)) for w, c in call_sites(program, home.scope)]
        if any(node is None for _, node in given):
            return
        if len({(id(w), dotted(node), id(w.function_of(node))) for w, node in given}) != 1:
            given = []
    elif isinstance(home.scope, ast.ClassDef):
        values = [(file, unmoved(value)) for value, _ in home.values() if value is not None]
        given = [(where, node) for where, node in values if dotted(node) not in ("", home.text)]
        given = given if len({dotted(node) for _, node in given}) == 1 else []
    elif home.scope is not None:  # self.model = model
        assigns = (one for one in file.nodes(ast.Assign) if file.function_of(one) is home.scope)
        pairs = (pair for one in assigns for pair in _pairs(one))
        kept = {dotted(target): target for target, value in pairs if dotted(unmoved(value)) == home.text}
        given = [(file, target) for name, target in kept.items() if name.startswith("self.")]
    for where, node in given[:1] if depth else ():
        if dotted(node) not in ("", "self") or not home.is_parameter:
            yield from _outwards(program, home_of(program, where, node, dotted(node)), depth - 1)


def _pairs(assign: ast.Assign) -> list[tuple[ast.expr, ast.expr]]:
    """What an assignment gives to what: ``self.model, self.optimizer = model, optimizer``."""
    target, value = assign.targets[0], assign.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        return list(zip(target.elts, value.elts))
    return [(one, value) for one in assign.targets]


def _lasts(program: Program, home: Home, found: list[Training]) -> bool:
    """Whether training goes through a scope: elsewhere a wrapped model would be forgotten."""
    for training in found:
        for file, function in training.scopes:
            if isinstance(home.scope, ast.ClassDef):
                if any(one is file.class_of(function) for _, one in program.family(home.file, home.scope)):
                    return True
            elif file is home.file and (function is home.scope or home.scope is None):
                return True
    return False


def _wrapped(program: Program, ways: list[Home], found: list[Training]) -> Wrapped:
    """Where to wrap: behind what prepares the model, before what uses it."""
    home, file = ways[0], ways[0].file
    named = uses(home)
    if not any(_is_moved(program, one) for one in ways):
        for inner in _inwards(program, home):
            if _lasts(program, inner, found) and _is_moved(program, inner):
                return _wrapped(program, [inner], found)
        raise UncertainError("model_not_on_device", home.file, (named or [None])[0], home=home)
    scope = home.scope
    if isinstance(scope, ast.ClassDef):
        stored = [file.function_of(node) for node in named if is_stored(node)]
        stored = [function for function in stored if file.class_of(function) is scope]
        if len({id(one) for one in stored}) != 1:
            raise UncertainError("model_in_methods", home.file, scope, home=home)
        scope = stored[0]
    own = {id(node) for node in named if file.function_of(node) is scope}
    behind = None
    loops = {id(one.batches) for one in found}
    trains = {id(function) for one in found for _, function in one.scopes if function is not None}
    known = home.is_parameter
    for statement in _block_with(scope if scope is not None else home.file.index.tree, own):
        if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
            continue
        called = (definition_of(program, home.file, node) for node in ast.walk(statement))
        if any(one and id(one[1]) in trains for one in called):
            break  # functions may use the name themselves
        mentioned = [node for node in ast.walk(statement) if id(node) in own]
        if not mentioned:
            continue
        if loops & ids(statement) or not all(prepares(program, home.file, node) for node in mentioned):
            break
        behind = statement
        known = known or any(map(is_stored, mentioned))
    if behind is None or not known or not home.file.own_line(behind):
        raise UncertainError("model_not_ready", home.file, (named or [None])[0], home=home)
    return Wrapped(home, behind)


def _block_with(scope: Any, own: set[int]) -> list[ast.stmt]:
    """The innermost block that holds all of some nodes, below statements that only enclose."""
    block: list[ast.stmt] = scope.body
    while True:
        holding: list[Any] = [one for one in block if own & ids(one)]
        one: Any = holding[0] if holding else None
        alone = len(holding) == 1
        if alone and (isinstance(one, (ast.With, ast.Try)) or (is_main_guard(one) and not one.orelse)):
            block = one.body
        elif _sets_first(one, own) and (isinstance(one, LOOPS) or (alone and own <= ids(*one.body))):
            block = one.body  # each round has a model of its own
        else:
            return block


def _sets_first(statement: Any, own: set[int]) -> bool:
    """Whether the first one of some nodes in a loop, or below a condition, sets what they name."""
    body = statement.body if isinstance(statement, (*LOOPS, ast.If)) else ()
    first = next((one for one in body if own & ids(one)), ast.Pass())
    return any(id(node) in own for node in stored_below(first)) and not isinstance(first, (*LOOPS, ast.If))


def _inwards(program: Program, home: Home, depth: int = 6) -> Iterator[Home]:
    """The scopes to which the model is handed: functions, and classes that keep it."""
    file = home.file
    for node in uses(home) if depth else ():
        call = file.taker_of(node)
        for inner in receiving(program, file, call, node) if isinstance(call, ast.Call) else ():
            yield inner
            owner = inner.file.class_of(inner.scope)
            for assign in inner.file.nodes(ast.Assign) if owner else ():
                kept = dotted(assign.targets[0])
                same = dotted(unmoved(assign.value)) == inner.text
                if same and inner.file.function_of(assign) is inner.scope:
                    if kept.startswith("self.") and kept.count(".") == 1:
                        yield Home(inner.file, owner, kept)
            if owner is not None:
                yield from _inwards(program, inner, depth - 1)  # super().__init__(model)


def _is_moved(program: Program, home: Home) -> bool:
    """Whether the model is put on a device in this scope, or comes from a function that does it."""
    above = [home.file.parent(node) for node in uses(home)]
    if any(isinstance(up, ast.Attribute) and _is_move(home.file.parent(up)) for up in above):
        return True
    for value, _ in home.values():
        for call in ast.walk(value) if value is not None else ():
            if _is_move(call):
                return True
            found = definition_of(program, home.file, call)
            if found and isinstance(found[1], FUNCTIONS) and any(map(_is_move, ast.walk(found[1]))):
                return True
    return False


def _is_move(node: Any) -> bool:
    if method_name(node) != "to":
        return method_name(node) == "cuda"
    return not all("float" in dotted(one) or "dtype" in dotted(one) for one in arguments_of(node))
