"""Where a value came from: the assignment or argument that gave it, through the calls of a failure."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from migrator.names.tree import FUNCTIONS, called_name, targets_of
from migrator.verify.diagnosis import Frame
from migrator.verify.repair.site import Code, Site, Sources

_DEPTH = 6


@dataclass(frozen=True)
class Origin:
    """An expression that a value came from, in its file."""

    code: Code
    node: ast.expr

    @property
    def line(self) -> str:
        """File, line and source, for a person."""
        return self.code.place(self.node)


def origin(site: Site, node: ast.expr, sources: Sources) -> Origin:
    """Where the value of an expression at a site was made, as far back as its way is clear."""
    here = Origin(site.code, node)
    frames = list(site.above)
    function = site.code.owner_of(site.statement)
    for _ in range(_DEPTH):
        following = _assigned(here, function, site.statement, sources)
        if following is None and isinstance(here.node, ast.Name) and isinstance(function, FUNCTIONS):
            passed = _passed(here.node.id, function, frames, sources)
            if passed is None:
                break
            caller, following = passed
            frames = list(caller.above)
            function, site = caller.code.owner_of(caller.statement), caller
        if following is None or following == here:
            break
        if following.code != here.code or following.code.owner_of(following.node) is not function:
            function = following.code.owner_of(following.node)
        here = following
    return here


def _assigned(here: Origin, function: ast.AST, statement: ast.stmt, sources: Sources) -> Origin | None:
    """The one assignment of a name in its function or file, or of an attribute anywhere in the project."""
    node = here.node
    if isinstance(node, ast.Name):
        for scope in dict.fromkeys((function, here.code.tree)):
            values = [
                value
                for value in _values_of(scope, node.id)
                if here.code.owner_of(value) is scope and value.lineno <= max(statement.lineno, node.lineno)
            ]
            if values:
                return Origin(here.code, values[-1])
            if _binds(scope, node.id):
                return None
    if isinstance(node, ast.Attribute):
        found = [
            Origin(code, value)
            for code in sources.every()
            if node.attr in code.text
            for value in _attribute_values(code.tree, node.attr)
        ]
        return found[0] if len(found) == 1 else None
    return None


def _values_of(scope: ast.AST, name: str) -> Iterator[ast.expr]:
    for each in ast.walk(scope):
        targets = targets_of(each)
        if len(targets) == 1 and isinstance(targets[0], ast.Name) and targets[0].id == name:
            if isinstance(each, (ast.Assign, ast.AnnAssign)) and each.value is not None:
                yield each.value


def _attribute_values(scope: ast.AST, name: str) -> Iterator[ast.expr]:
    for each in ast.walk(scope):
        if isinstance(each, ast.Assign):
            for target in each.targets:
                if isinstance(target, ast.Attribute) and target.attr == name:
                    yield each.value


def _binds(scope: ast.AST, name: str) -> bool:
    if not isinstance(scope, FUNCTIONS):
        return False
    given = scope.args
    return name in [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]


def _passed(
    name: str, function: ast.AST, frames: list[Frame], sources: Sources
) -> tuple[Site, Origin] | None:
    """The argument that a parameter was given by the caller in the stack, and the caller."""
    assert isinstance(function, FUNCTIONS)
    sites = sources.sites(list(reversed(frames)))
    caller = sites[0] if sites else None
    if caller is None:
        return None
    calls = caller.calls()
    wanted = [call for call in calls if called_name(call) in (function.name, "")] or calls[:1]
    if not wanted:
        return None
    call = wanted[0]
    for keyword in call.keywords:
        if keyword.arg == name:
            return caller, Origin(caller.code, keyword.value)
    names = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
    if name not in names:
        return None
    place = names.index(name) - (names[:1] in (["self"], ["cls"]))
    if 0 <= place < len(call.args) and not isinstance(call.args[place], ast.Starred):
        return caller, Origin(caller.code, call.args[place])
    return None
