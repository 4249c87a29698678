"""The names of horovod.torch in a file, and what takes their places."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from migrator.convert.draft import DIST, Draft, UncertainError
from migrator.convert.horovod.tables import PACKAGE, advice, imports, table
from migrator.convert.models import Home
from migrator.convert.program import File
from migrator.convert.syntax import ids
from migrator.convert.texts import names_in
from migrator.convert.write import rewritten
from migrator.language import _
from migrator.names.tree import FUNCTIONS

_OWN_MODULES = re.compile(r"^(?:mpi_ops|functions|optimizer|compression|sync_batch_norm)\.")
_OPTIMIZER = "DistributedOptimizer"
_AVERAGE, _SUM = "dist.ReduceOp.AVG", "dist.ReduceOp.SUM"


@dataclass
class Plan:
    """What is planned for the files that belong together, for a torch version: changes, and objections.

    ``used``: the names in the new code of each file, helpers among them; ``optimizers``: the calls of
    DistributedOptimizer; ``wrapped``: the models, and the statements that wrap them.
    """

    draft: Draft
    version: tuple[int, ...]
    problems: list[UncertainError] = field(default_factory=list)
    used: dict[str, set[str]] = field(default_factory=dict)
    optimizers: list[tuple[File, ast.Call]] = field(default_factory=list)
    wrapped: list[tuple[Home, Any]] = field(default_factory=list)

    def refuse(self, key: str, file: File, node: ast.AST, **values: object) -> None:
        """Nothing can be converted, because of this."""
        self.problems.append(UncertainError(key, file, node, **values))

    def replace(self, file: File, node: Any, code: str, message: str) -> None:
        """Put code in the place of an expression."""
        around = (up for _, up in file.above(node))
        up = next(up for up in around if isinstance(up, ast.JoinedStr) or not isinstance(up, ast.expr))
        if isinstance(up, ast.JoinedStr) and '"' in file.index.segment(up):
            code = code.replace('"', "'")  # before Python 3.12 the text's own quotes would end it
        self.draft.replace(file, node, code, message)
        self.use(file, code)

    def use(self, file: File, code: str) -> None:
        """Import what new code needs, and take over the helpers that it calls."""
        self.draft.of(file).imports.extend(imports(code))
        self.used.setdefault(file.name, set()).update(names_in(code))

    def written(self, file: File, node: ast.AST) -> str:
        """The source of an expression with the new code in it."""
        return rewritten(file.index, node, self.draft.of(file).edits)


def plan_names(file: File, plan: Plan, refused: set[int]) -> None:
    """Plan it for a file without ``refused`` nodes; the calls of DistributedOptimizer are only collected."""
    collectives = []  # last: their arguments may hold other names
    for node, name in references(file):
        if id(node) in refused:
            continue
        up = file.parent(node)
        if isinstance(up, ast.Call) and up.func is node:
            if name in table("calls"):
                collectives.append((up, name))
            else:
                _plan_call(file, up, name, plan)
        elif isinstance(up, ast.keyword) and up.arg in table("only_default") and _is_left_away(file, up):
            continue
        elif name in table("values"):
            code = table("values")[name]
            plan.replace(file, node, code, _("{name} of Horovod is {code}", name=name, code=code))
        elif not (name == "Adasum" and _chosen_for_optimizer(file, node)):
            key = "no_counterpart" if name else "module_as_value"
            plan.refuse(key, file, node, name=f"hvd.{name}", advice=advice(name))
    for call, name in collectives:
        _plan_collective(file, call, name, plan)
    for statement in file.nodes(ast.Import, ast.ImportFrom):
        _plan_import(file, statement, plan)


def references(file: File) -> Iterator[tuple[Any, str]]:
    """The outermost names in a file that mean something of Horovod's, and what follows ``horovod.torch.``"""
    for node in file.nodes(ast.Name, ast.Attribute):
        if isinstance(file.parent(node), (ast.Attribute, ast.alias)) or not isinstance(node.ctx, ast.Load):
            continue
        name = file.index.qualified_name(node)
        if name == "horovod" or name.startswith("horovod."):
            rest = name[len(PACKAGE) + 1 :] if name.startswith(PACKAGE) else name[len("horovod.") :]
            yield node, _OWN_MODULES.sub("", rest)


def has_counterpart(file: File, node: ast.AST, name: str) -> bool:
    """Whether there may be one for a name of Horovod's, or whether none is a matter of how it is used."""
    if name in ("", "Adasum", _OPTIMIZER) or name in table("values"):
        return True
    up = file.parent(node)
    if isinstance(up, ast.Call) and up.func is node:
        return name in table("calls") or name in table("calls_without_arguments")
    return isinstance(up, ast.keyword)


def _is_left_away(file: File, keyword: Any) -> bool:
    """Whether an argument of Horovod's says what is so without it, and goes."""
    call = file.parent(keyword)
    called = isinstance(call, ast.Call) and file.called(call).startswith(f"{PACKAGE}.")
    return called and is_default(file, keyword.arg, keyword.value)


def _plan_call(file: File, call: ast.Call, name: str, plan: Plan) -> None:
    plain = table("calls_without_arguments")
    if name == _OPTIMIZER:
        plan.optimizers.append((file, call))
    elif name in plain:
        if call.args or call.keywords:
            plan.refuse("called_with_arguments", file, call, name=name, advice=advice("ProcessSet"))
            return
        plan.replace(file, call, plain[name], _("{name} of Horovod is {code}", name=name, code=plain[name]))
    else:
        plan.refuse("no_counterpart", file, call, name=f"hvd.{name}", advice=advice(name))


def given(call: ast.Call, names: list[str]) -> dict[str, tuple[int, Any]] | None:
    """The arguments of a call by their parameters, each with its place; None where that is not plain."""
    if any(isinstance(one, ast.Starred) for one in call.args) or len(call.args) > len(names):
        return None
    found = {name: (place, value) for place, (name, value) in enumerate(zip(names, call.args))}
    for place, keyword in enumerate(call.keywords, len(call.args)):
        if keyword.arg is None or keyword.arg not in names:
            return None
        found[keyword.arg] = (place, keyword.value)
    return found


def is_default(file: File, name: str, value: Any) -> bool:
    """Whether an argument says what is so without it."""
    allowed = [*table("only_default").get(name, ()), "None"]
    return file.index.segment(value) in allowed or file.index.qualified_name(value) in allowed


def _plan_collective(file: File, call: ast.Call, name: str, plan: Plan) -> None:
    values = given(call, table("calls")[name])
    if values is None:
        plan.refuse("collective_arguments", file, call, name=name)
        return
    dropped = []
    added = []
    for parameter, (place, value) in values.items():
        if parameter in table("only_default"):
            if not is_default(file, parameter, value):
                what = {"name": name, "parameter": parameter, "advice": _instead(parameter)}
                plan.refuse("argument_without_counterpart", file, value, **what)
        elif parameter not in ("average", *table("dropped")):
            continue
        dropped.append(place)
        if parameter == "average" and file.index.segment(value) not in ("True", "None"):
            average = plan.written(file, value)
            added.append(f"op={_SUM}" if average == "False" else f"op={_AVERAGE} if {average} else {_SUM}")
    inside = dropped and max(dropped) < len(call.args) - 1
    if inside and any(place not in dropped for place in range(min(dropped), len(call.args))):
        plan.refuse("arguments_behind_name", file, call, name=name)
        return
    code = table("values").get(name, f"hvd_{name}")
    plan.draft.replace(file, call.func, code)
    if dropped or added:
        plan.draft.change_arguments(file, call, sorted(dropped), added)
    plan.use(file, code)
    for one in added:
        plan.use(file, one.partition("=")[2])
    plan.draft.changed(file, call, _("{name} over torch.distributed", name=name))


def _instead(parameter: str) -> str:
    return {
        "compression": "Reduce tensor.half(), and convert the result back.",
        "process_set": advice("ProcessSet"),
        "splits": "dist.all_to_all_single(output, tensor, output_split_sizes, input_split_sizes)",
    }.get(parameter, "Multiply the tensor before, or the result after it.")


def _chosen_for_optimizer(file: File, node: ast.AST) -> bool:
    """Whether Adasum stands in the ``op`` of DistributedOptimizer, which is looked at there."""
    up = next(up for _, up in file.above(node) if not isinstance(up, (ast.IfExp, ast.keyword)))
    return isinstance(up, ast.Call) and file.called(up) == f"{PACKAGE}.{_OPTIMIZER}"


def _plan_import(file: File, statement: Any, plan: Plan) -> None:
    if isinstance(statement, ast.Import):
        ours = [alias for alias in statement.names if alias.name.split(".")[0] == "horovod"]
    else:
        module = statement.module or ""
        ours = list(statement.names) if not statement.level and module.split(".")[0] == "horovod" else []
    if not ours:
        return
    names = [alias.name if isinstance(statement, ast.Import) else statement.module for alias in ours]
    if any(name != "horovod" and not name.startswith(PACKAGE) for name in names):
        told = advice(names[0].partition(".")[2])
        plan.refuse("no_counterpart", file, statement, name=names[0], advice=told)
    elif any(alias.name == "*" for alias in ours) or not file.own_line(statement):
        plan.refuse("import_not_plain", file, statement)
    else:
        rest = [ast.unparse(alias) for alias in statement.names if alias not in ours]
        lines = [f"import {', '.join(rest)}"] if rest else []
        others = plan.draft.of(file).after.values()
        if DIST not in file.text and not any(DIST in new for new in others):
            lines.append(DIST)
        elif file.is_alone(statement):
            lines.append("pass")
        plan.draft.of(file).removed.add(statement)
        plan.draft.of(file).after[statement] = lines
        message = _("torch.distributed does what Horovod did")
        plan.draft.changed(file, statement, message, "MODIFY" if lines else "DELETE")


# -- branches that an option chooses: what has no equivalent in them is refused when they are taken ----------


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
