"""Objects and lists in which training collects numbers, and the loss that L-BFGS is given."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from migrator.convert.distributed.changes.metrics import (
    behind,
    line_for,
    put,
    report_share,
    statements_before,
)
from migrator.convert.distributed.find.training import Training, feeds
from migrator.convert.draft import Draft, UncertainError
from migrator.convert.program import File, Program
from migrator.convert.syntax import (
    Loop,
    dotted,
    ids,
    last_name,
    method_name,
    names_below,
    stored_below,
    walk_all,
)
from migrator.convert.values import definition_of


def reduce_meters(program: Program, draft: Draft, found: list[Training]) -> None:
    """Plan it for objects like ``AverageMeter``; of lists, report what is made of them."""
    for training in found:
        _meters(program, draft, training)
        _lists(draft, training)
        _others(program, draft, training)


def _meters(program: Program, draft: Draft, training: Training) -> None:
    """Objects of a class with ``sum`` and ``count`` that the loop updates."""
    file, loop = training.file, training.batches
    updated = [dotted(node.func.value) for node in walk_all([loop]) if method_name(node) == "update"]
    for name in dict.fromkeys(updated):
        used = any(node.id == name for node in behind(file, loop, ast.Name))
        made = file.bindings(file.function_of(loop), name) if used else []
        owners = [definition_of(program, file, one) for one in _calls(made)]
        if len(owners) != 1 or owners[0] is None or not isinstance(owners[0][1], ast.ClassDef):
            continue
        stores = set(map(dotted, stored_below(owners[0][1])))
        if not {"self.sum", "self.count"} <= stores:
            continue
        if not _fresh(file, loop, name, made):
            report_share(draft, training, f"{name}.avg")
            continue
        lines = [f"{name}.{one} = sum_over_ranks({name}.{one})" for one in ("sum", "count")]
        if "self.avg" in stores:
            lines.append(f"{name}.avg = {name}.sum / {name}.count")
        put(draft, training, draft.of(file).after.setdefault(loop, []), loop, lines)


def average_in_closures(program: Program, draft: Draft, found: list[Training]) -> None:
    """L-BFGS ends its steps by the loss that its closure returns: it has to be the same on every rank.

    Raises UncertainError where that loss has no name.
    """
    if "torch.optim.LBFGS" not in (file.called(call) for file, call in program.nodes(ast.Call)):
        return
    for training in found:
        file = training.file
        closure = file.function_of(training.backward)
        if closure is None or closure is file.function_of(training.batches):
            continue
        last = closure.body[-1]
        name = dotted(last.value) if isinstance(last, ast.Return) and last.value is not None else ""
        if not name:
            raise UncertainError("closure_loss", file, closure)
        lines = [line_for(program, file, name, True)]
        put(draft, training, draft.of(file).before.setdefault(last, []), last, lines)


def _calls(made: Sequence[tuple[Any, int]]) -> list[Any]:
    found = []
    for value, place in made:
        if place >= 0 and isinstance(value, ast.Tuple):
            value = value.elts[place]
        found.append(value)
    return [one for one in found if isinstance(one, ast.Call)]


def _fresh(file: File, loop: Loop, name: str, made: Sequence[tuple[Any, int]]) -> bool:
    """Whether an object is made, or reset, in the loop's block before it."""
    before = statements_before(file, loop)
    calls = [one for one in walk_all(before) if isinstance(one, ast.Call)]
    resets = (one for one in calls if dotted(one.func) == f"{name}.reset")
    return set(map(id, _calls(made))) <= ids(*before) or any(resets)


def _lists(draft: Draft, training: Training) -> None:
    """``losses.append(loss.item())``: what is made of the list is of one rank."""
    file, loop = training.file, training.batches
    appends = (node for node in walk_all([loop]) if method_name(node) == "append" and len(node.args) == 1)
    for node in appends:
        if "loss" not in ast.dump(node.args[0]).lower():
            continue
        name = dotted(node.func.value)
        taken = (one for one in behind(file, loop, ast.Call) if last_name(one) in ("mean", "sum"))
        if name and any(name in names_below(one) for one in taken):
            draft.report("mean_of_list", file, node, name=name)


def _others(program: Program, draft: Draft, training: Training) -> None:
    """Report the sums in tables, and means that are kept up to date, which are used behind the loop."""
    file, loop = training.file, training.batches
    of_batches = feeds(program, training)
    used = {node.id for node in behind(file, loop, ast.Name)}
    for node in walk_all(loop.body):
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Subscript):
            name = dotted(node.target.value)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp):
            name = dotted(node.targets[0])
            name = name if name in names_below(node.value) else ""
        else:
            continue
        if name in used and file.function_of(node) is file.function_of(loop) and of_batches(node.value):
            report_share(draft, training, name)
            used.discard(name)
