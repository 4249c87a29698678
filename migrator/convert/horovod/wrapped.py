"""Where the model goes that DistributedDataParallel wraps: what calls it, and what needs the model inside."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from migrator.convert.draft import UncertainError
from migrator.convert.horovod.other_names import check_before, check_outside, evaluates
from migrator.convert.horovod.tables import PACKAGE, table
from migrator.convert.models import Home, Wrapped, home_of_target, receiving, uses, wrapped_uses
from migrator.convert.program import File, Program
from migrator.convert.syntax import dotted, is_after, is_main_guard, is_stored, parameters
from migrator.convert.values import call_sites, definition_of
from migrator.names.tree import FUNCTIONS, Function
from migrator.project.distributed_use import listed

_MOVES = ("cuda", "to", "npu")


def follow(program: Program, home: Home, behind: ast.stmt) -> Wrapped:
    """What becomes of the uses of a model that is wrapped behind a statement.

    Raises UncertainError where some of the training might go past the wrapper.
    """
    check_before(program, home, behind)
    check_outside(program, home)
    result = Wrapped(home, behind, [(home, behind)])
    waiting, seen = [home], [home]
    while waiting:
        one = waiting.pop()
        for node in wrapped_uses(one, result):
            for more in _use(program, one, node, result):
                if not any(more.same(old) for old in seen):
                    seen.append(more)
                    waiting.append(more)
        if one.text.startswith("self."):
            _from_outside(program, one, result)
    if not result.calls:
        raise UncertainError("call_not_seen", home.file, behind, home=home)
    conditional = _is_conditional(home.file, behind)
    for node, (file, _) in list(result.inner.items()):
        perhaps = conditional or _may_be_bare(program, file, node, result, seen)
        result.inner[node] = (file, perhaps)
    return result


def _use(program: Program, home: Home, node: ast.AST, result: Wrapped) -> Iterator[Home]:
    """Judge one use of the wrapped model; gives the scopes to which it hands it."""
    file = home.file
    up, call = file.parent(node), file.taker_of(node)
    if is_stored(node):
        return
    if isinstance(up, ast.Attribute):
        _attribute(program, home, node, up, result)
    elif isinstance(call, ast.Call):
        if call.func is node:
            result.calls.append((file, node))
            return
        given = list(receiving(program, file, call, node))
        where = definition_of(program, file, call)
        if where is not None and isinstance(where[1], ast.ClassDef):
            _check_kept(program, node, result)
        name = file.called(call) or dotted(call.func)
        if given:
            yield from given
        elif dotted(call.func) in table("asks"):
            if not _about_the_wrapper(file, call):
                result.inner[node] = (file, False)
        elif listed("need_the_model", name):
            result.inner[node] = (file, False)
        elif name.endswith(".DataParallel"):
            raise UncertainError("data_parallel_too", file, call, home=home)
        elif not listed("take_a_wrapped_model", name) and not name.startswith(PACKAGE):
            result.unclear.append((file, node))
    elif isinstance(up, ast.Assign) and up.value is node and len(up.targets) == 1:
        if not isinstance(up.targets[0], ast.Name):
            _check_kept(program, node, result)
        yield from _kept(file, up.targets[0], node, result)
    elif isinstance(up, ast.Return) or (
        isinstance(up, ast.Tuple) and isinstance(file.parent(up), ast.Return)
    ):
        _check_kept(program, node, result)
        yield from _returned(program, node, up if isinstance(up, ast.Tuple) else None, result)
    elif isinstance(up, ast.Subscript):
        raise UncertainError("part_of_model", file, up, home=home)
    elif not isinstance(up, (ast.Compare, ast.Expr, ast.BoolOp, ast.If)):
        result.unclear.append((file, node))


def _about_the_wrapper(file: File, call: ast.Call) -> bool:
    """Whether a call asks if the model is wrapped."""
    text = file.index.segment(call)
    return "DataParallel" in text or '"module"' in text or "'module'" in text


def _check_kept(program: Program, node: ast.AST, result: Wrapped) -> None:
    """What keeps the model elsewhere must do so when it is wrapped. Raises UncertainError."""
    function = program.entry.function_of(node)
    if any(program.entry.function_of(statement) is function for _, statement in result.since):
        return
    if function is not None and not _only_called_after(program, function, result.behind):
        raise UncertainError("handed_on", result.home.file, result.behind, home=result.home)


def _returned(program: Program, node: Any, together: ast.Tuple | None, result: Wrapped) -> Iterator[Home]:
    """The scopes that get a value which a function returns, alone or in a tuple."""
    for file, site in call_sites(program, program.entry.function_of(node)):
        assign = file.parent(site)
        if isinstance(assign, ast.Expr):
            continue
        target: Any = assign.targets[0] if isinstance(assign, ast.Assign) else None
        if target is not None and together is not None:
            plain = isinstance(target, ast.Tuple) and len(target.elts) == len(together.elts)
            target = target.elts[together.elts.index(node)] if plain else None
        if target is None:
            result.unclear.append((file, site))
        else:
            yield from _kept(file, target, site, result)


def _kept(file: File, target: ast.expr | None, node: ast.AST, result: Wrapped) -> Iterator[Home]:
    """The scope in which a value is kept under a name."""
    kept = home_of_target(file, target, node)
    if kept is None:
        result.unclear.append((file, node))
        return
    if isinstance(target, ast.Name) and not any(kept.same(one) for one, _ in result.since):
        result.since.append((kept, file.index.statement_of(target)))
    yield kept


def _attribute(program: Program, home: Home, node: ast.AST, up: ast.Attribute, result: Wrapped) -> None:
    """Judge ``model.something``."""
    file = home.file
    chain: Any = up
    last = up.attr
    while isinstance(above := file.parent(chain), (ast.Attribute, ast.Subscript)) and above.value is chain:
        chain = above
        last = getattr(chain, "attr", last)
    call = file.parent(chain)
    called = isinstance(call, ast.Call) and call.func is chain
    if up.attr in _MOVES and called and chain is up:
        function = file.function_of(node)
        here = function is file.function_of(result.behind)
        if here or (function and _only_called_after(program, function, result.behind)):
            raise UncertainError("moved_behind", file, up, home=home)
        return  # it is the bare model's, or moves the one inside
    if up.attr in table("same_when_wrapped") and chain is up:
        if up.attr == "forward":
            result.calls.append((file, node))
        if not (called and isinstance(file.parent(call), ast.Attribute)):
            return
    methods = {*table("module_methods"), *table("same_when_wrapped")}
    computes = called and bool(call.args or call.keywords) and last not in methods
    if computes and not {"weight", "bias", "data"} & set(dotted(chain).split(".")):
        if not evaluates(program, file, node):
            raise UncertainError("submodule_called", file, call, home=home, last=last, called=dotted(chain))
    result.inner[node] = (file, False)


def _from_outside(program: Program, home: Home, result: Wrapped) -> None:
    """``trainer.model.state_dict()``: an attribute of another object that may be the wrapped model."""
    mine = {id(node) for node in uses(home)}
    for file, node in program.nodes(ast.Attribute):
        up = file.parent(node)
        if (
            node.attr == home.text.partition(".")[2]
            and id(node) not in mine
            and isinstance(up, ast.Attribute)
        ):
            if up.attr in ("state_dict", "load_state_dict") and isinstance(node.ctx, ast.Load):
                result.inner[node] = (file, True)


def _is_conditional(file: File, behind: ast.stmt) -> bool:
    """Whether there are ways past the statement, on which the model stays bare."""
    for _, up in file.above(behind):
        if isinstance(up, FUNCTIONS):
            break
        if not is_main_guard(up) and not isinstance(up, (ast.With, ast.Module)):
            return True
    return False


def _may_be_bare(program: Program, file: File, node: ast.AST, wrapped: Wrapped, seen: list[Home]) -> bool:
    """Whether what is wrapped when the program trains may be the bare model at other times."""
    if wrapped.inner[node][1]:
        return True
    function = file.function_of(node)
    if any(one.file is file and file.function_of(statement) is function for one, statement in wrapped.since):
        return False
    if function is None:
        return file is not wrapped.home.file
    text = dotted(node)
    if text not in parameters(function):
        return not _only_called_after(program, function, wrapped.behind)
    known = {(id(scope.file), id(one)) for scope in seen for one in wrapped_uses(scope, wrapped)}
    sites = [(where, file.argument(call, function, text)) for where, call in call_sites(program, function)]
    return not sites or any((id(where), id(value)) not in known for where, value in sites)


def _only_called_after(program: Program, function: Function | None, behind: ast.stmt, depth: int = 4) -> bool:
    """Whether a function is called behind a statement only, as far as the calls are seen."""
    sites = call_sites(program, function)
    for _, call in sites:
        caller = program.entry.function_of(call)
        if caller is program.entry.function_of(behind):
            if not is_after(call, behind):
                return False
        elif caller is None or not depth or not _only_called_after(program, caller, behind, depth - 1):
            return False
    return bool(sites)
