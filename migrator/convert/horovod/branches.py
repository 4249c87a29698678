"""Branches that an option chooses and that hold what has no equivalent: they are refused when taken."""

from __future__ import annotations

import ast
import json
from typing import Any

from migrator.convert.horovod.calls import Plan, has_counterpart, references
from migrator.convert.horovod.tables import advice
from migrator.convert.program import File
from migrator.convert.syntax import ids
from migrator.language import _
from migrator.names.tree import FUNCTIONS


def refuse_branches(file: File, plan: Plan) -> set[int]:
    """Plan it for a file; gives the ids of all nodes in those branches."""
    inside: set[int] = set()
    for node, name in references(file):
        if id(node) in inside or has_counterpart(file, node, name):
            continue
        branch = _optional_branch(file, node)
        if branch:
            inside |= ids(*branch)
            what = f"hvd.{name}" if name != "run" else "horovod.run"
            refusal = f"{what} has no equivalent: start the program with run_distributed_npu.sh or torchrun"
            changes = plan.draft.of(file)
            changes.removed.update(branch)
            changes.after[branch[0]] = [f"raise NotImplementedError({json.dumps(refusal)})"]
            plan.draft.report("branch_refused", file, node, name=what, advice=advice(name))
            plan.draft.changed(
                file, branch[0], _("{what} has no equivalent: this branch is refused", what=what)
            )
    return inside


def _optional_branch(file: File, node: ast.AST) -> list[ast.stmt]:
    """The innermost block around a node that runs only where an option is given; empty without."""
    for child, up in file.above(node):
        if isinstance(up, (*FUNCTIONS, ast.ClassDef)):
            break
        if isinstance(up, ast.If):
            for block, given in ((up.body, True), (up.orelse, False)):
                if any(child is one for one in block):
                    chosen = _asks_for_option(up.test) is given and all(map(file.own_line, block))
                    return list(block) if chosen else []
    return []


def _asks_for_option(test: Any) -> bool | None:
    """Whether a condition holds where an option (``args.name``) is given; None for any other condition."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        asked = _asks_for_option(test.operand)
        return None if asked is None else not asked
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        is_none = isinstance(test.comparators[0], ast.Constant) and test.comparators[0].value is None
        if is_none and isinstance(test.ops[0], (ast.Is, ast.IsNot)) and _is_option(test.left):
            return isinstance(test.ops[0], ast.IsNot)
    return True if _is_option(test) else None


def _is_option(node: Any) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id != "self"
