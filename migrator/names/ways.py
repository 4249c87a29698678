"""Two ways of a program, one for CUDA and another one, and the question for CUDA that chooses between them.

A question for CUDA that stays as it is has the answer no on an NPU. Here is told what then does not run, and
what runs in its place; or that the program stops.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from migrator.names.index import ModuleIndex
from migrator.names.statements import LEAVING, ends_run
from migrator.names.tree import FUNCTIONS, Function, bare_name, called_name

_CUDA_BUILD = re.compile(rb"\bCUDAExtension\b|\bCUDA_HOME\b|\bnvcc\b|\.cu\b")
QUESTIONS = frozenset({"is_available", "device_count"})
_ASKING = frozenset({"startswith", "isinstance", "device", "bool"})
_NEGATIVE = (ast.NotEq, ast.IsNot, ast.NotIn)
# Calls that read a version, or a number, from a text.
_READS = frozenset({"parse", "Version", "LooseVersion", "StrictVersion", "parse_version", "float", "int"})
_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


class Choice(NamedTuple):
    """What does not run where a question for CUDA is answered with no, and what runs instead."""

    skipped: Sequence[ast.AST]
    taken: Sequence[ast.AST]


def choices(index: ModuleIndex, node: ast.AST) -> list[Choice]:
    """What a question for CUDA chooses, also by a name that holds its answer."""
    holder, answer = decided(index, node)
    beside = _not_asked(index, node)
    if isinstance(holder, ast.Assign) and isinstance(holder.targets[0], ast.Name):
        found = []
        for use in index.uses_of(holder.targets[0]):
            around, yes = decided(index, use)
            found += _chosen(index, around, yes != answer, beside)
        return found
    return _chosen(index, holder, answer, beside)


def guards_cuda_build(index: ModuleIndex, node: ast.AST) -> bool:
    """Whether a question for a GPU decides that CUDA sources are compiled."""
    if not isinstance(node, ast.Attribute) or node.attr not in QUESTIONS:
        return False
    return any(
        _CUDA_BUILD.search(index.data, index.start(each), index.end(each))
        for choice in choices(index, node)
        for each in choice.skipped
    )


def keeps_from_operators(index: ModuleIndex, node: ast.AST, operators: Collection[object]) -> bool:
    """Whether a question that stays as it is keeps an NPU from CUDA operators, where there is another way.

    ``operators`` are the nodes that use one, see ``operator_uses``.
    """
    return _avoids(choices(index, node), operators)


def prefers_operators(index: ModuleIndex, node: ast.AST, operators: Collection[object]) -> bool:
    """Whether what is not asked for goes to CUDA operators, as an NPU does at a question for the CPU."""
    found = choices(index, node)
    return _avoids([Choice(choice.taken, choice.skipped) for choice in found], operators)


def _avoids(found: Sequence[Choice], operators: Collection[object]) -> bool:
    return bool(found) and all(
        _holds(choice.skipped, operators)
        and not _is_refusal(choice.taken)
        and not _holds(choice.taken, operators)
        for choice in found
    )


def operator_uses(index: ModuleIndex, uses: Collection[ast.AST]) -> set[object]:
    """The uses of CUDA operators, and those of functions and classes of the file that come to one."""
    found: set[object] = set(uses)
    named: set[object] = set()
    fresh: Collection[ast.AST] = uses
    while fresh:
        owners = {owner for use in fresh for owner in _owners(index, use)} - named
        named |= owners
        fresh = [use for owner in owners for use in index.uses_of(owner) if use not in found]
        found.update(fresh)
    return found


def is_inside(index: ModuleIndex, node: ast.AST, around: Sequence[ast.AST]) -> bool:
    """Whether a node is one of others, or inside one."""
    return any(up in around for up in (node, *index.above(node)))


def _owners(index: ModuleIndex, use: ast.AST) -> Iterator[Function | ast.ClassDef]:
    """The outermost function or class that a use is in, where no choice inside it has another way."""
    outer = [up for up in index.above(use) if isinstance(up, (*FUNCTIONS, ast.ClassDef))]
    if outer and not any(_has_other_way(index, up, use) for up in index.above(use)):
        yield outer[-1]


def _has_other_way(index: ModuleIndex, around: ast.AST, use: ast.AST) -> bool:
    if isinstance(around, ast.IfExp):
        return use is not around.test
    if isinstance(around, ast.If) and (around.orelse or _behind(index, around)):
        return not _is_refusal(around.orelse or _behind(index, around))
    before = index.before(around)
    return any(isinstance(each, ast.If) and isinstance(each.body[-1], ast.Return) for each in before)


def _is_refusal(way: Sequence[ast.AST]) -> bool:
    return not way or isinstance(way[0], (ast.Raise, ast.Assert))


def decided(index: ModuleIndex, node: ast.AST) -> tuple[ast.AST | None, bool]:
    """What a question is the condition of, or is assigned to, and what that is where the answer is no."""
    child, around, value = node, index.parent(node), False
    while around is not None:
        if isinstance(around, ast.UnaryOp) and isinstance(around.op, ast.Not):
            value = not value
        elif isinstance(around, ast.Compare):
            beside = around.comparators[0]
            is_zero = isinstance(beside, ast.Constant) and beside.value == 0
            turning = (ast.Eq,) if is_zero else _NEGATIVE
            value = value != isinstance(around.ops[0], turning)
        elif isinstance(around, ast.Call):
            if child is not around.func and bare_name(around.func) not in _ASKING:
                return None, value
        elif not isinstance(around, (ast.BoolOp, ast.NamedExpr, ast.Tuple, ast.List, ast.Set, ast.Attribute)):
            break
        child, around = around, index.parent(around)
    if isinstance(around, (ast.If, ast.IfExp)) and child is not around.test:
        return None, value
    return around, value


def _not_asked(index: ModuleIndex, node: ast.AST) -> list[ast.AST]:
    """What stands behind a question in the same ``and``: ``x.is_cuda and load_operators()``."""
    for child, around in index.way_up(node):
        if isinstance(around, ast.BoolOp):
            behind = around.values[[each is child for each in around.values].index(True) + 1 :]
            return [*behind] if isinstance(around.op, ast.And) else []
        if not isinstance(around, (ast.Compare, ast.Call, ast.Attribute)):
            break
    return []


def _chosen(
    index: ModuleIndex, around: ast.AST | None, value: bool, beside: Sequence[ast.AST]
) -> list[Choice]:
    """The choice of a condition that is ``value`` on an NPU; what stands ``beside`` it is not asked there."""
    if isinstance(around, ast.IfExp):
        ways: tuple[Sequence[ast.AST], Sequence[ast.AST]] = ([around.body], [around.orelse])
    elif isinstance(around, ast.If):
        ways = around.body, around.orelse or _behind(index, around)
    else:
        return []
    return [Choice([*ways[value], *beside], ways[not value])]


def _behind(index: ModuleIndex, around: ast.If) -> Sequence[ast.stmt]:
    """What runs in place of a body that leaves the block: the statements behind it."""
    return [*index.behind(around)] if isinstance(around.body[-1], LEAVING) else []


def _holds(nodes: Sequence[ast.AST], wanted: Collection[object]) -> bool:
    return any(inner in wanted for node in nodes for inner in ast.walk(node))


def stops_without(index: ModuleIndex, node: ast.AST) -> bool:
    """Whether a program stops where a value is None, or an answer no: ``if version.cuda is None: raise``."""
    test, around = node, index.parent(node)
    holds = False
    while isinstance(around, (ast.UnaryOp, ast.Compare, ast.BoolOp, ast.Call)):
        if isinstance(around, ast.UnaryOp):
            holds = not holds
        elif isinstance(around, ast.Compare):
            if not isinstance(around.ops[0], (ast.Is, ast.IsNot)):
                return False
            holds = isinstance(around.ops[0], ast.Is)
        elif isinstance(around, ast.BoolOp) and isinstance(around.op, ast.And) == holds:
            return False  # the other conditions decide, too
        elif isinstance(around, ast.Call) and around.func is not test:
            return False
        test, around = around, index.parent(around)
    if isinstance(around, ast.Assert):
        return test is around.test and not holds
    if not isinstance(around, ast.If) or test is not around.test:
        return False
    taken = around.body if holds else around.orelse
    last = taken[-1] if taken else None
    return isinstance(last, ast.Raise) or ends_run(last)


def needs_value(index: ModuleIndex, node: ast.AST) -> bool:
    """Whether None fails at once: ``torch.version.cuda.split(".")``, ``parse(torch.version.cuda)``."""
    around = index.parent(node)
    if isinstance(around, ast.Attribute):
        return True
    if isinstance(around, ast.Compare):
        return isinstance(around.ops[0], _ORDERS)
    return isinstance(around, ast.Call) and node in around.args and called_name(around) in _READS
