"""Objects and lists in which training collects numbers, and the loss that L-BFGS is given."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from migrator.convert.distributed.metrics import line_for, put, report_share, statements_before
from migrator.convert.distributed.training import Training
from migrator.convert.draft import Draft, UncertainError
from migrator.convert.program import Program
from migrator.convert.syntax import dotted, function_of
from migrator.convert.texts import functions
from migrator.convert.values import definition_of


def reduce_meters(program: Program, draft: Draft, found: list[Training]) -> None:
    """Plan it for objects like ``AverageMeter``; of lists, report what is made of them."""
    for training in found:
        _meters(program, draft, training)
        _lists(draft, training)


def _meters(program: Program, draft: Draft, training: Training) -> None:
    """Objects of a class with ``sum`` and ``count`` that the loop updates."""
    file, loop = training.file, training.batches
    updated = {
        dotted(node.func.value): None
        for node in ast.walk(loop)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "update"
    }
    for name in updated:
        used = [
            node
            for node in file.nodes(ast.Name)
            if node.id == name
            and node.lineno > (loop.end_lineno or 0)
            and function_of(node) is function_of(loop)
        ]
        made = file.bindings(function_of(loop), name) if used else []
        owners = [definition_of(program, file, one) for one in _calls(made)]
        if len(owners) != 1 or owners[0] is None or not isinstance(owners[0][1], ast.ClassDef):
            continue
        stores = {
            dotted(one) for one in ast.walk(owners[0][1]) if isinstance(getattr(one, "ctx", None), ast.Store)
        }
        if not {"self.sum", "self.count"} <= stores:
            continue
        if not _fresh(loop, name, made):
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
    optimizers = (file.called(call) for file in program.files.values() for call in file.nodes(ast.Call))
    if "torch.optim.LBFGS" not in optimizers:
        return
    for training in found:
        closure = function_of(training.backward)
        if closure is None or closure is function_of(training.batches):
            continue
        last = closure.body[-1]
        name = dotted(last.value) if isinstance(last, ast.Return) and last.value is not None else ""
        if not name:
            raise UncertainError(
                "closure_loss",
                training.file,
                closure,
                helper=functions("helpers.py")["sum_over_ranks"],
            )
        lines = [line_for(name, True)]
        put(draft, training, draft.of(training.file).before.setdefault(last, []), last, lines)


def _calls(made: Sequence[tuple[Any, int]]) -> list[Any]:
    found = []
    for value, place in made:
        if place >= 0 and isinstance(value, ast.Tuple):
            value = value.elts[place]
        found.append(value)
    return [one for one in found if isinstance(one, ast.Call)]


def _fresh(loop: Any, name: str, made: Sequence[tuple[Any, int]]) -> bool:
    """Whether an object is made, or reset, in the loop's block before it."""
    before = statements_before(loop)
    ids = {id(node) for one in before for node in ast.walk(one)}
    resets = (
        node
        for one in before
        for node in ast.walk(one)
        if isinstance(node, ast.Call) and dotted(node.func) == f"{name}.reset"
    )
    return all(id(one) in ids for one in _calls(made)) or any(resets)


def _lists(draft: Draft, training: Training) -> None:
    """``losses.append(loss.item())``: what is made of the list is of one rank."""
    file, loop = training.file, training.batches
    for node in ast.walk(loop):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or len(node.args) != 1:
            continue
        name = dotted(node.func.value)
        if node.func.attr != "append" or "loss" not in ast.dump(node.args[0]).lower():
            continue
        behind = (
            one
            for one in file.nodes(ast.Call)
            if one.lineno > (loop.end_lineno or 0)
            and function_of(one) is function_of(loop)
            and dotted(one.func).split(".")[-1] in ("mean", "sum")
            and name in map(dotted, ast.walk(one))
        )
        if name and next(behind, None) is not None:
            draft.report("mean_of_list", file, node, name=name)
