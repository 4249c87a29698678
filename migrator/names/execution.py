"""Whether a place in a module is sure to run: on import, or because the module's own code calls it.

Loops count as run. Calls by other modules are not known: what only they call is not sure to run.
"""

from __future__ import annotations

import ast

from migrator.names.index import ModuleIndex
from migrator.names.statements import ends_run, stops
from migrator.names.tree import FUNCTIONS, Function, bare_name, called_name

_TRIES = (ast.Try, getattr(ast, "TryStar", ast.Try))
_CATCHING = frozenset({"suppress", "raises"})  # contextlib.suppress(…), pytest.raises(…)
_LEAVING = (ast.Return, ast.Continue, ast.Break)
_STARTERS = frozenset({"spawn", "start_processes"})  # torch.multiprocessing runs the function they are given
_WITH_INSTANCE = frozenset({"__init__", "__new__", "__post_init__", "forward"})


def surely_runs(index: ModuleIndex, node: ast.AST) -> bool:
    """Whether a node runs when its module is imported or started, with no condition before it."""
    return _runs(index, node, frozenset())


def is_conditional(index: ModuleIndex, node: ast.AST) -> bool:
    """Whether some condition in the module, of its function or around that, decides whether a node runs.

    A ``try`` that may catch what it raises is one, an ``assert`` or an early ``return`` before it, too.
    """
    for child, parent in index.way_up(node):
        if _decides(parent, child) or _left_before(index, child, (*_LEAVING, ast.Raise, ast.Assert)):
            return True
    return False


def in_other_branch(index: ModuleIndex, one: ast.AST, other: ast.AST) -> bool:
    """Whether two nodes lie in the two branches of one ``if``."""
    inside = {id(node): node for node in index.above(other)}
    for child, around in index.way_up(one):
        if isinstance(around, ast.If) and id(around) in inside and id(child) not in inside:
            return child in around.body or child in around.orelse
    return False


def _runs(index: ModuleIndex, node: ast.AST, asked: frozenset[ast.AST]) -> bool:
    for child, parent in index.way_up(node):
        if _decides(parent, child) or isinstance(parent, ast.Lambda) or _left_before(index, child, _LEAVING):
            return False
        if isinstance(parent, FUNCTIONS) and child in parent.body:
            return parent not in asked and _is_called(index, parent, asked | {parent})
    return True


def _is_called(index: ModuleIndex, function: Function, asked: frozenset[ast.AST]) -> bool:
    """Whether a call of the function is sure to run."""
    owner = index.parent(function)
    if not isinstance(owner, ast.ClassDef):
        return _is_used(index, function, asked)
    if function.name in _WITH_INSTANCE:
        return _is_used(index, owner, asked)
    for method in owner.body:
        scope = index.inside(method)
        for use in index.uses("self", scope) if scope else ():
            attribute = index.parent(use)
            if bare_name(attribute) == function.name and attribute and index.call_of(attribute):
                if _runs(index, use, asked):
                    return True
    return False


def _is_used(index: ModuleIndex, defined: Function | ast.ClassDef, asked: frozenset[ast.AST]) -> bool:
    for use in index.uses_of(defined):
        call = index.call_of(use) or index.parent(use)
        called = isinstance(call, ast.Call) and (call.func is use or called_name(call) in _STARTERS)
        if called and _runs(index, use, asked):
            return True
    return False


def _decides(parent: ast.AST, child: ast.AST) -> bool:
    """Whether ``parent`` may leave out its part ``child``, or catch what that raises."""
    if isinstance(parent, ast.If):
        # if __name__ == "__main__":, which holds where the file is the program
        names = isinstance(parent.test, ast.Compare) and bare_name(parent.test.left) == "__name__"
        return child is not parent.test and not (names and child in parent.body)
    if isinstance(parent, ast.IfExp):
        return child is not parent.test
    if isinstance(parent, ast.BoolOp):
        return child is not parent.values[0]
    if isinstance(parent, _TRIES):
        goes_on = any(not stops(handler.body[-1]) for handler in parent.handlers)
        return child in parent.handlers or (goes_on and child in parent.body)
    if isinstance(parent, (ast.With, ast.AsyncWith)):
        return any(called_name(item.context_expr) in _CATCHING for item in parent.items)
    if isinstance(parent, ast.Assert):
        return child is parent.msg
    return isinstance(parent, (ast.ExceptHandler, ast.comprehension)) or type(parent).__name__ == "match_case"


def _left_before(index: ModuleIndex, node: ast.AST, leaving: tuple[type[ast.stmt], ...]) -> bool:
    """Whether an earlier ``if`` of the same block may have left it, or an ``assert`` where that counts."""
    for earlier in index.before(node) if isinstance(node, ast.stmt) else ():
        last = earlier.body[-1] if isinstance(earlier, ast.If) else earlier
        if isinstance(last, leaving) or (ends_run(last) and last is not earlier):
            return True
    return False
