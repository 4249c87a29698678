"""``optimizer.synchronize()`` and ``skip_synchronize()``, for which DistributedDataParallel has no need."""

from __future__ import annotations

import ast
import re
from typing import Any

from migrator.convert.horovod.calls import Plan
from migrator.convert.program import File, Program
from migrator.convert.syntax import dotted, is_alone, parent

_OPTIMIZER = re.compile(r"(?:^|[._])(?:opt|optim|optimizer)\w*$", re.I)


def plan_synchronize(program: Program, plan: Plan) -> None:
    """``optimizer.synchronize()`` and what skips it: the gradients are reduced when backward() returns."""
    made = [file.index.statement_of(call) for file, call in plan.optimizers]
    names = {dotted(each.targets[0]) for each in made if isinstance(each, ast.Assign)}
    for file in program.files.values():
        for node in file.nodes(ast.Attribute):
            text = dotted(node.value)
            ours = text in names or bool(_OPTIMIZER.search(text))
            if node.attr == "skip_synchronize" or (
                ours and node.attr in ("synchronize", "set_backward_passes_per_step")
            ):
                _without(file, node, plan)


def _without(file: File, node: Any, plan: Plan) -> None:
    statement: Any = file.index.statement_of(node)
    call = parent(node)
    if isinstance(statement, ast.Expr) and statement.value is call and file.own_line(statement):
        plan.draft.of(file).removed.add(statement)
        if is_alone(statement):
            plan.draft.of(file).after[statement] = ["pass"]
    elif isinstance(statement, ast.With) and len(statement.items) == 1 and file.own_line(statement):
        plan.draft.of(file).dissolved.add(statement)
    else:
        plan.refuse("synchronize_not_plain", file, node, name=node.attr)
        return
    message = "backward() of a DistributedDataParallel model has reduced the gradients when it returns"
    plan.draft.changed(file, statement if isinstance(statement, ast.Expr) else node, message, "DELETE")
