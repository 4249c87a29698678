"""Batches that a program draws itself are shared: each rank takes its own of what all ranks draw."""

from __future__ import annotations

import ast

from migrator.convert.distributed.find.batches import carried, is_of
from migrator.convert.distributed.find.training import Training
from migrator.convert.draft import DIST, Draft, UncertainError
from migrator.convert.models import Wrapped
from migrator.convert.program import File, Program
from migrator.convert.syntax import dotted
from migrator.language import _
from migrator.project.distributed_use import entries, listed


def check_batches(found: list[Training], models: list[Wrapped]) -> None:
    """Raises UncertainError where batches build on those before, or are not seen to go into a model."""
    for training in found:
        for model in models:
            calls = [(file, node) for file, node in model.calls if id(node) in training.inside]
            node = carried(training.file, training.batches, calls)
            if node is not None:
                raise UncertainError("carried_state", training.file, node)
            parents = [file.parent(node) for file, node in calls]
            given = [one for call in parents for one in (*call.args, *call.keywords)]
            if (
                calls
                and training.drawn
                and not any(one.feeds(arg) for one in training.drawn for arg in given)
            ):
                raise UncertainError("batches_pass_by", training.file, training.batches, home=model.home)


def share_drawn(program: Program, draft: Draft, found: list[Training]) -> None:
    """Plan it for the batches of the training loops, and for what asks for their number."""
    any_ = False
    for training in found:
        for one in training.drawn:
            any_ = True
            helper = "own_turn" if one.one else "ShareOfRank"
            _take(draft, one.file, one.node, helper, "lambda: " if one.one else "")
            for file, call in [] if one.one else program.nodes(ast.Call):
                if dotted(call.func) == "len" and call.args and is_of(program, one, call.args[0]):
                    _take(draft, file, call.args[0], helper)
        if training.drawn:
            draft.report("drawn_by_all", training.file, training.batches)
    if any_:
        _seed_alike(program, draft)


def _take(draft: Draft, file: File, node: ast.AST, helper: str, before: str = "") -> None:
    code = f"{helper}({before}{file.index.segment(node)})"
    draft.replace(file, node, code, _("every rank trains on its share of the batches"))
    draft.call(file, helper, DIST)


def _seed_alike(program: Program, draft: Draft) -> None:
    """Plan it for the random numbers that the program uses without a seed."""
    called = {file.called(call) for file, call in program.nodes(ast.Call)}
    used = {name for name in called if listed("random_numbers", name)}
    unseeded = [
        seed
        for seed in entries("seeds")
        if seed not in called and any(name.startswith(seed.rpartition(".")[0] + ".") for name in used)
    ]
    if unseeded:
        draft.call(program.entry, "seed_alike", *(f"import {seed.rpartition('.')[0]}" for seed in unseeded))
        draft.set_up.append(f"seed_alike({', '.join(unseeded)})")
