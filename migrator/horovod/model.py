"""Where the model goes that DistributedDataParallel wraps: what calls it, and what needs the model inside."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from migrator.distributed.find import Home, UncertainError, _home
from migrator.distributed.model import _prepares, _receiving, uses
from migrator.distributed.names import listed
from migrator.distributed.program import (
    FUNCTIONS,
    File,
    Program,
    argument,
    bindings,
    call_sites,
    class_of,
    dotted,
    function_of,
    on_self,
    parameters,
    parent,
)
from migrator.horovod.names import PACKAGE, table

_DEPTH = 6
_EVALUATES = re.compile(r"\.eval\(\)|\bno_grad\b|\binference_mode\b|\btrain\(False\)")
_MOVES = ("cuda", "to", "npu")


@dataclass
class Wrapped:
    """The uses of a model that is wrapped behind a statement.

    ``inner``: those that need the model inside; True where it may be bare. ``since``: names that
    become those of the wrapped model by a statement.
    """

    home: Home
    behind: Any
    since: list[tuple[Home, Any]] = field(default_factory=list)
    inner: dict[Any, tuple[File, bool]] = field(default_factory=dict)
    unclear: list[tuple[File, Any]] = field(default_factory=list)
    calls: list[tuple[File, Any]] = field(default_factory=list)


def follow(program: Program, home: Home, behind: Any) -> Wrapped:
    """What becomes of the uses of a model that is wrapped behind a statement.

    Raises UncertainError where some of the training might go past the wrapper.
    """
    _check_before(program, home, behind)
    _check_outside(program, home)
    result = Wrapped(home, behind, [(home, behind)])
    waiting, seen = [home], [home]
    while waiting:
        one = waiting.pop()
        for node in _uses_of_wrapped(one, result):
            for more in _use(program, one, node, result):
                if not any(more.same(old) for old in seen):
                    seen.append(more)
                    waiting.append(more)
        if one.text.startswith("self."):
            _from_outside(program, one, result)
    if not result.calls:
        raise UncertainError(
            f"nothing that is seen calls {home.text}: DistributedDataParallel works when the model is called",
            _lines(home),
            home.file,
            behind,
        )
    conditional = _is_conditional(home, behind)
    for node, (file, _) in list(result.inner.items()):
        perhaps = conditional or _may_be_bare(program, file, node, result, seen)
        result.inner[node] = (file, perhaps)
    return result


def _lines(home: Home) -> str:
    return f"{home.text} = DistributedDataParallel({home.text}, broadcast_buffers=False)"


def _check_before(program: Program, home: Home, behind: Any) -> None:
    """Before it is wrapped nothing may have got hold of the bare model that could train it."""
    function = function_of(behind)
    if isinstance(home.scope, ast.ClassDef):
        values = on_self(home.file, home.scope, home.text.partition(".")[2])
    else:
        values = bindings(home.file, home.scope, home.text)
    for value, _ in values:
        if value is None or not (isinstance(value, ast.Call) or _is_parameter(value, home)):
            raise UncertainError(
                f"{home.text} may have another name, by which it is trained",
                _lines(home),
                home.file,
                value or behind,
            )
    known = home.scope is not None and not isinstance(home.scope, ast.ClassDef)
    if not values and not (known and home.text in parameters(home.scope)):
        raise UncertainError(f"where {home.text} comes from is not seen", _lines(home), home.file, behind)
    for node in uses(home):
        same = function_of(node) is function
        if isinstance(node.ctx, ast.Store):
            if same and _is_after(node, behind):
                raise UncertainError(
                    f"{home.text} is set anew behind hvd.DistributedOptimizer", _lines(home), home.file, node
                )
        elif same and not _is_after(node, behind) and not _inside(node, behind):
            if not _prepares(program, home.file, node, _DEPTH) and not _evaluates(program, home.file, node):
                raise UncertainError(
                    f"{home.text} is used before hvd.DistributedOptimizer, and may be trained by another name",
                    f"Behind what prepares the model, and before anything keeps it, write {_lines(home)}",
                    home.file,
                    node,
                )


def _is_parameter(value: Any, home: Home) -> bool:
    """Whether ``self.model`` is set to a method's parameter: who gives it is looked at, too."""
    function = function_of(value)
    return (
        isinstance(home.scope, ast.ClassDef)
        and isinstance(value, ast.Name)
        and function is not None
        and value.id in parameters(function)
    )


def _check_outside(program: Program, home: Home, depth: int = _DEPTH) -> None:
    """Who hands in the model may not train it by itself: its name keeps the bare one."""
    for scope, name in _taken_from(home):
        sites = call_sites(program, scope)
        if not sites or not depth:
            raise UncertainError(
                f"who calls {scope.name} with {name} is not seen: there it stays the model without wrapper",
                f"Return the model from {scope.name}, or wrap it where it is made: {_lines(home)}",
                home.file,
                scope,
            )
        for where, call in sites:
            value = argument(call, scope, name)
            if isinstance(value, ast.Call):
                continue
            if not dotted(value) or dotted(value).count(".") > dotted(value).startswith("self."):
                raise UncertainError(
                    f"what {scope.name} gets as {name} is not plain", _lines(home), where, call
                )
            outer = _home(where, value, dotted(value))
            for node in uses(outer):
                mine = (
                    node is value or isinstance(node.ctx, ast.Store) or _goes_to(program, where, node, scope)
                )
                if (
                    not mine
                    and not _prepares(program, where, node, _DEPTH)
                    and not _evaluates(program, where, node)
                ):
                    raise UncertainError(
                        f"{outer.text} is not the wrapped model here, and may be trained",
                        f"Wrap it before: {_lines(outer)}",
                        where,
                        node,
                    )
            _check_outside(program, outer, depth - 1)


def _goes_to(program: Program, file: File, node: Any, scope: Any) -> bool:
    call = parent(node.parent) if isinstance(node.parent, ast.keyword) else node.parent
    found = program.definition(file, call) if isinstance(call, ast.Call) else None
    return found is not None and found[1] in (scope, class_of(scope))


def _taken_from(home: Home) -> Iterator[tuple[Any, str]]:
    """The functions, each with its parameter, through which a model comes to its name."""
    if isinstance(home.scope, ast.ClassDef):
        for value, _ in on_self(home.file, home.scope, home.text.partition(".")[2]):
            function = function_of(value) if value is not None else None
            if isinstance(value, ast.Name) and function is not None and value.id in parameters(function):
                yield function, value.id
    elif home.scope is not None and home.text in parameters(home.scope):
        yield home.scope, home.text


def _is_after(node: Any, statement: Any) -> bool:
    return (node.lineno, node.col_offset) > (statement.end_lineno, statement.end_col_offset)


def _inside(node: Any, statement: Any) -> bool:
    return not _is_after(node, statement) and (node.lineno, node.col_offset) >= (
        statement.lineno,
        statement.col_offset,
    )


def _uses_of_wrapped(home: Home, wrapped: Wrapped) -> list[Any]:
    """The uses of a name in which it is the wrapped model's."""
    found = uses(home)
    for other, statement in wrapped.since:
        if other.same(home):
            function = function_of(statement)
            return [node for node in found if function_of(node) is not function or _is_after(node, statement)]
    return found


def _evaluates(program: Program, file: File, node: Any) -> bool:
    """Whether a use stands in a function, or goes to one, that only evaluates."""
    call = parent(node.parent) if isinstance(node.parent, ast.keyword) else node.parent
    places = [(file, function_of(node))]
    found = program.definition(file, call) if isinstance(call, ast.Call) and call.func is not node else None
    if found is not None:
        places.append(found)
    for where, function in places:
        text = where.index.segment(function) if isinstance(function, FUNCTIONS) else ""
        if _EVALUATES.search(text) and ".backward(" not in text:
            return True
    return False


def _use(program: Program, home: Home, node: Any, result: Wrapped) -> Iterator[Home]:
    """Judge one use of the wrapped model; gives the scopes to which it hands it."""
    file, up = home.file, node.parent
    if isinstance(node.ctx, ast.Store):
        return
    if isinstance(up, ast.Attribute):
        _attribute(program, home, node, up, result)
        return
    call = parent(up) if isinstance(up, ast.keyword) else up
    if isinstance(call, ast.Call):
        if call.func is node:
            result.calls.append((file, node))
            return
        given = list(_receiving(program, file, call, node))
        where = program.definition(file, call)
        name = file.called(call) or dotted(call.func)
        if given and where is not None:
            for function, parameter in given:
                yield Home(where[0], function, parameter)
        elif listed("need_the_model", name):
            result.inner[node] = (file, False)
        elif name.endswith(".DataParallel"):
            raise UncertainError("nn.DataParallel wraps the model, too", _lines(home), file, call)
        elif not listed("take_a_wrapped_model", name) and not name.startswith(PACKAGE):
            result.unclear.append((file, node))
    elif isinstance(up, ast.Assign) and up.value is node and len(up.targets) == 1:
        yield from _kept(file, up.targets[0], node, result)
    elif isinstance(up, ast.Return) or (isinstance(up, ast.Tuple) and isinstance(parent(up), ast.Return)):
        place = up.elts.index(node) if isinstance(up, ast.Tuple) else -1
        for where, site in call_sites(program, function_of(node)):
            if not isinstance(parent(site), ast.Assign):
                result.unclear.append((where, site))
                continue
            target = parent(site).targets[0]
            if place >= 0:
                if not isinstance(target, ast.Tuple) or len(target.elts) != len(up.elts):
                    result.unclear.append((where, site))
                    continue
                target = target.elts[place]
            yield from _kept(where, target, site, result)
    elif not isinstance(up, (ast.Compare, ast.Expr, ast.BoolOp, ast.If)):
        result.unclear.append((file, node))


def _kept(file: File, target: Any, node: Any, result: Wrapped) -> Iterator[Home]:
    """The scope in which a value is kept under a name."""
    text = dotted(target)
    owner = class_of(function_of(node))
    if isinstance(target, ast.Name):
        kept = Home(file, function_of(node), text)
        if not any(kept.same(one) for one, _ in result.since):
            result.since.append((kept, file.index.statement_of(target)))
        yield kept
    elif text.startswith("self.") and text.count(".") == 1 and owner is not None:
        yield Home(file, owner, text)
    else:
        result.unclear.append((file, node))


def _attribute(program: Program, home: Home, node: Any, up: Any, result: Wrapped) -> None:
    """Judge ``model.something``."""
    file = home.file
    chain, last = up, up.attr
    while isinstance(chain.parent, (ast.Attribute, ast.Subscript)) and chain.parent.value is chain:
        chain = chain.parent
        last = getattr(chain, "attr", last)
    call = chain.parent
    called = isinstance(call, ast.Call) and call.func is chain
    if up.attr in _MOVES and called and chain is up:
        raise UncertainError(
            f"{home.text} is moved behind hvd.DistributedOptimizer",
            f"Behind this line: {_lines(home)}",
            file,
            up,
        )
    if up.attr in table("same_when_wrapped") and chain is up:
        if up.attr == "forward":
            result.calls.append((file, node))
        if not (called and isinstance(parent(call), ast.Attribute)):
            return
    methods = {*table("module_methods"), *table("same_when_wrapped")}
    computes = called and bool(call.args) and last not in methods
    if computes and not {"weight", "bias", "data"} & set(dotted(chain).split(".")):
        if not _evaluates(program, file, node):
            raise UncertainError(
                f"{dotted(chain)}() is called: DistributedDataParallel reduces the gradients of what goes through "
                f"{home.text}(…) only",
                f"Let forward() do what {last}() does, and call {home.text}(…).",
                file,
                call,
            )
    result.inner[node] = (file, False)


def _from_outside(program: Program, home: Home, result: Wrapped) -> None:
    """``trainer.model.state_dict()``: an attribute of another object that may be the wrapped model."""
    name = home.text.partition(".")[2]
    mine = {id(node) for node in uses(home)}
    for file in program.files.values():
        for node in file.nodes(ast.Attribute):
            up = node.parent
            if node.attr != name or id(node) in mine or not isinstance(up, ast.Attribute):
                continue
            if up.attr in ("state_dict", "load_state_dict") and isinstance(node.ctx, ast.Load):
                result.inner[node] = (file, True)


def _is_conditional(home: Home, behind: Any) -> bool:
    """Whether there are ways past the statement, on which the model stays bare."""
    up = behind.parent
    while up is not None and not isinstance(up, (*FUNCTIONS, ast.Module)):
        guard = isinstance(up, ast.If) and "__name__" in ast.dump(up.test)
        if not guard and not isinstance(up, ast.With):
            return True
        up = getattr(up, "parent", None)
    return False


def _may_be_bare(program: Program, file: File, node: Any, wrapped: Wrapped, seen: list[Home]) -> bool:
    """Whether what is wrapped when the program trains may be the bare model at other times."""
    home = wrapped.home
    if wrapped.inner[node][1]:
        return True
    function = function_of(node)
    if any(one.file is file and function_of(statement) is function for one, statement in wrapped.since):
        return False
    if function is None:
        return file is not home.file
    text = dotted(node)
    if text in parameters(function):
        sites = [(where, argument(call, function, text)) for where, call in call_sites(program, function)]
        return not sites or not all(
            any(
                value is one
                for scope in seen
                if scope.file is where
                for one in _uses_of_wrapped(scope, wrapped)
            )
            for where, value in sites
        )
    return not _only_called_after(program, function, wrapped.behind)


def _only_called_after(program: Program, function: Any, behind: Any, depth: int = 4) -> bool:
    """Whether a function is called behind a statement only, as far as the calls are seen."""
    sites = call_sites(program, function)
    for _, call in sites:
        caller = function_of(call)
        if caller is function_of(behind):
            if not _is_after(call, behind):
                return False
        elif caller is None or not depth or not _only_called_after(program, caller, behind, depth - 1):
            return False
    return bool(sites)
