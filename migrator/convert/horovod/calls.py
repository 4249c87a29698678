"""The names of horovod.torch in a file, and what takes their places: ``reports/distributed/horovod.yaml``."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from migrator.convert.draft import DIST, Draft, UncertainError
from migrator.convert.program import Home, Program, below, given, is_stored
from migrator.convert.write import rewritten
from migrator.data_folders import reports_yaml
from migrator.language import N_, _
from migrator.names.tree import FUNCTIONS, Import, is_none
from migrator.names.whole_file import WholeFile

PACKAGE = "horovod.torch"
_OWN_MODULES = re.compile(r"^(?:mpi_ops|functions|optimizer|compression|sync_batch_norm)\.")
_OPTIMIZER = "DistributedOptimizer"
_AVERAGE, _SUM = "dist.ReduceOp.AVG", "dist.ReduceOp.SUM"


def table(name: str) -> Any:
    """One of the tables."""
    return reports_yaml("distributed/horovod.yaml")[name]


def advice(name: str) -> str:
    """What a person does about a name of Horovod's that has no equivalent."""
    by_hand: dict[str, str] = table("by_hand")
    first = name.split(".")[0]
    return " ".join(_(by_hand.get(first, "").strip() or N_("Write it with torch.distributed.")).split())


@dataclass
class Plan(Draft):
    """What is planned for the files that belong together, for a torch version: changes, and objections.

    ``optimizers``: the calls of DistributedOptimizer; ``wrapped``: the models, and the statements that wrap
    them.
    """

    helpers: str = "horovod_helpers.py"
    changed_code: str = "NPU930"
    reported_code: str = "NPU931"
    version: tuple[int, ...] = ()
    problems: list[UncertainError] = field(default_factory=list)
    optimizers: list[ast.Call] = field(default_factory=list)
    wrapped: list[tuple[Home, ast.stmt]] = field(default_factory=list)

    def refuse(self, key: str, node: ast.AST, **values: object) -> None:
        """Nothing can be converted, because of this."""
        self.problems.append(UncertainError(key, node, **values))

    def written(self, node: ast.AST) -> str:
        """The source of an expression with the new code in it."""
        return rewritten(self.program.file(node), node, self.of(node).edits)


def plan_names(file: WholeFile, plan: Plan, refused: set[ast.AST]) -> None:
    """Plan it for a file without ``refused`` nodes; the calls of DistributedOptimizer are only collected."""
    program = plan.program
    collectives = []  # last: their arguments may hold other names
    for node, name in references(program, file):
        if node in refused:
            continue
        up = program.parent(node)
        taker = next(one for _, one in program.above(node) if not isinstance(one, (ast.IfExp, ast.keyword)))
        chosen = program.name(taker) if isinstance(taker, ast.Call) else ""
        if isinstance(up, ast.Call) and up.func is node:
            if name in table("calls"):
                collectives.append((up, name))
            else:
                _plan_call(up, name, plan)
        elif (
            isinstance(up, ast.keyword)
            and up.arg in table("only_default")
            and is_default(program, up.arg or "", up.value)
            and program.name(program.parent(up) or up).startswith(f"{PACKAGE}.")
        ):
            continue
        elif name in table("values"):
            code = table("values")[name]
            plan.replace(node, code, _("{name} of Horovod is {code}", name=name, code=code))
        elif not (name == "Adasum" and chosen == f"{PACKAGE}.{_OPTIMIZER}"):  # it looks at that itself
            key = "no_counterpart" if name else "module_as_value"
            plan.refuse(key, node, name=f"hvd.{name}", advice=advice(name))
    for call, name in collectives:
        _plan_collective(call, name, plan)
    for statement in file.imports:
        _plan_import(statement, plan)


def references(program: Program, file: WholeFile) -> Iterator[tuple[ast.expr, str]]:
    """The outermost names in a file that mean something of Horovod's, and what follows ``horovod.torch.``"""
    for node in program.nodes(ast.Name, ast.Attribute, file=file):
        if isinstance(program.parent(node), ast.Attribute) or is_stored(node):
            continue
        name = program.name(node)
        if name == "horovod" or name.startswith("horovod."):
            rest = name[len(PACKAGE) + 1 :] if name.startswith(PACKAGE) else name[len("horovod.") :]
            yield node, _OWN_MODULES.sub("", rest)


def _has_counterpart(program: Program, node: ast.AST, name: str) -> bool:
    """Whether there may be one for a name of Horovod's, or whether none is a matter of how it is used."""
    if name in ("", "Adasum", _OPTIMIZER) or name in table("values"):
        return True
    up = program.parent(node)
    if isinstance(up, ast.Call) and up.func is node:
        return name in table("calls") or name in table("calls_without_arguments")
    return isinstance(up, ast.keyword)


def _plan_call(call: ast.Call, name: str, plan: Plan) -> None:
    plain = table("calls_without_arguments")
    if name == _OPTIMIZER:
        plan.optimizers.append(call)
    elif name not in plain:
        plan.refuse("no_counterpart", call, name=f"hvd.{name}", advice=advice(name))
    elif call.args or call.keywords:
        plan.refuse("called_with_arguments", call, name=name, advice=advice("ProcessSet"))
    else:
        plan.replace(call, plain[name], _("{name} of Horovod is {code}", name=name, code=plain[name]))


def is_default(program: Program, name: str, value: ast.expr | None) -> bool:
    """Whether an argument is not given, or says what is so without it."""
    allowed = [*table("only_default").get(name, ()), "None"]
    return value is None or program.segment(value) in allowed or program.name(value) in allowed


def _plan_collective(call: ast.Call, name: str, plan: Plan) -> None:
    values = given(call, table("calls")[name])
    if values is None or not values.keys() <= set(table("calls")[name]):
        plan.refuse("collective_arguments", call, name=name)
        return
    dropped = []
    added = []
    for parameter, (place, value) in values.items():
        if parameter in table("only_default"):
            if not is_default(plan.program, parameter, value):
                instead = {**table("instead_of_argument"), "process_set": advice("ProcessSet")}
                what = instead.get(parameter, instead["other"])
                plan.refuse(
                    "argument_without_counterpart", value, name=name, parameter=parameter, advice=what
                )
        elif parameter not in ("average", *table("dropped")):
            continue
        dropped.append(place)
        if parameter == "average" and plan.program.segment(value) not in ("True", "None"):
            average = plan.written(value)
            added.append(f"op={_SUM}" if average == "False" else f"op={_AVERAGE} if {average} else {_SUM}")
    inside = dropped and max(dropped) < len(call.args) - 1
    if inside and any(place not in dropped for place in range(min(dropped), len(call.args))):
        plan.refuse("arguments_behind_name", call, name=name)
        return
    code = table("values").get(name, f"hvd_{name}")
    plan.replace(call.func, code)
    if dropped or added:
        plan.change_arguments(call, sorted(dropped), added)
    plan.changed(call, _("{name} over torch.distributed", name=name))


def _plan_import(statement: Import, plan: Plan) -> None:
    if isinstance(statement, ast.Import):
        ours = [alias for alias in statement.names if alias.name.split(".")[0] == "horovod"]
    else:
        module = statement.module or ""
        ours = list(statement.names) if not statement.level and module.split(".")[0] == "horovod" else []
    if not ours:
        return
    names = [alias.name if isinstance(statement, ast.Import) else statement.module or "" for alias in ours]
    if any(name != "horovod" and not name.startswith(PACKAGE) for name in names):
        plan.refuse("no_counterpart", statement, name=names[0], advice=advice(names[0].partition(".")[2]))
    elif any(alias.name == "*" for alias in ours) or not plan.program.own_line(statement):
        plan.refuse("import_not_plain", statement)
    else:
        rest = [ast.unparse(alias) for alias in statement.names if alias not in ours]
        lines = [f"import {', '.join(rest)}"] if rest else []
        new = [line for lines in plan.of(statement).after.values() for line in lines]
        if DIST not in plan.program.file(statement).text and DIST not in new:
            lines.append(DIST)
        elif plan.program.is_alone(statement):
            lines.append("pass")
        plan.remove(statement, lines, _("torch.distributed does what Horovod did"))


# -- branches that an option chooses: what has no equivalent in them is refused when they are taken ----------


def refuse_branches(file: WholeFile, plan: Plan) -> set[ast.AST]:
    """Plan it for a file; gives all nodes in those branches."""
    inside: set[ast.AST] = set()
    for node, name in references(plan.program, file):
        if node in inside or _has_counterpart(plan.program, node, name):
            continue
        branch = _optional_branch(plan.program, node)
        if branch:
            inside |= below(*branch)
            what = f"hvd.{name}" if name != "run" else "horovod.run"
            refusal = f"{what} has no equivalent: start the program with run_distributed_npu.sh or torchrun"
            plan.of(node).removed.update(branch)
            plan.report("branch_refused", node, name=what, advice=advice(name))
            message = _("{what} has no equivalent: this branch is refused", what=what)
            plan.remove(branch[0], [f"raise NotImplementedError({json.dumps(refusal)})"], message)
    return inside


def _optional_branch(program: Program, node: ast.AST) -> list[ast.stmt]:
    """The innermost block around a node that runs only where an option is given; empty without."""
    for child, up in program.above(node):
        if isinstance(up, (*FUNCTIONS, ast.ClassDef)):
            break
        if isinstance(up, ast.If):
            for block, wanted in ((up.body, True), (up.orelse, False)):
                if child in block:
                    chosen = _asks_for_option(up.test) is wanted and all(map(program.own_line, block))
                    return list(block) if chosen else []
    return []


def _asks_for_option(test: ast.expr) -> bool | None:
    """Whether a condition holds where an option (``args.name``) is given; None for any other condition."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        asked = _asks_for_option(test.operand)
        return None if asked is None else not asked
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and is_none(test.comparators[0]):
        if isinstance(test.ops[0], (ast.Is, ast.IsNot)) and _is_option(test.left):
            return isinstance(test.ops[0], ast.IsNot)
    return True if _is_option(test) else None


def _is_option(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id != "self"
