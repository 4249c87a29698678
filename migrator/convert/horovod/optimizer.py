"""hvd.DistributedOptimizer goes, and its synchronize(); DistributedDataParallel comes around the model."""

from __future__ import annotations

import ast
import re
from typing import Optional

from migrator.convert.draft import UncertainError
from migrator.convert.horovod.calls import PACKAGE, Plan, is_default, table
from migrator.convert.horovod.wrapped import follow
from migrator.convert.models import Wrapped, owners_behind
from migrator.convert.program import LOOPS, Home, Program, Value, below, dotted, given, method_name
from migrator.convert.write import first_argument
from migrator.language import _
from migrator.names.conditions import in_other_branch
from migrator.names.tree import argument_of, is_off, only_target

_OPTIMIZER = re.compile(r"(?:^|[._])(?:opt|optim|optimizer)\w*$", re.I)
_HOOKS = (2, 1)  # register_comm_hook works on NPUs from there on (api_db; 1.11 has no get_future)

Arguments = dict[str, ast.expr]


def plan_optimizer(call: ast.Call, plan: Plan) -> None:
    """Plan it for one call of DistributedOptimizer. Raises UncertainError where it has no place."""
    program = plan.program
    statement = program.statement_of(call)
    values = given(call, table("optimizer"))
    target = only_target(statement)
    plain = target is not None and program.parent(call) is statement and program.own_line(statement)
    known = values is not None and {"optimizer"} <= values.keys() <= set(table("optimizer"))
    if not plain or values is None or not known:
        raise UncertainError("optimizer_not_plain", call)
    arguments = {name: value for name, (_, value) in values.items()}
    home = _model_of(program, arguments, call)
    for other, place in plan.wrapped:
        if other == home and not in_other_branch(program.file(place), place, statement):
            raise UncertainError("several_optimizers", call, home=home)
    plan.wrapped.append((home, statement))
    wrapped = follow(program, home, statement)
    model = home.text
    lines = [
        *_op(arguments.get("op"), model, plan, arguments),
        f"{model} = DistributedDataParallel({model}, broadcast_buffers=False)",
        *_hooks(arguments, model, plan),
    ]
    _check_others(program, arguments)
    _check_passes(arguments.get("backward_passes_per_step"), wrapped, plan)
    changes = plan.of(call)
    if dotted(target) and dotted(target) == dotted(arguments["optimizer"]):
        changes.removed.add(statement)
    else:
        changes.edits += first_argument(program.file(call), call)
        if values["optimizer"][0] != 0:
            raise UncertainError("optimizer_not_first", call)
    plan.insert("after", statement, lines)
    message = _("DistributedDataParallel averages the gradients, in the backward pass")
    plan.changed(statement, message)
    message = _("the model inside of DistributedDataParallel: its keys stay")
    wrapped.use_the_model_inside(plan, message)


def _model_of(program: Program, arguments: Arguments, call: ast.Call) -> Home:
    """The model whose parameters are named, or else are the optimizer's."""
    nodes: list[ast.expr] = []
    for name in ("named_parameters", "optimizer"):
        if name in arguments and not nodes:
            nodes = owners_behind(program, arguments[name])
    texts = {dotted(node) for node in nodes}
    if len(texts) != 1:
        what = _("several models") if texts else _("a model that is not seen")
        raise UncertainError("model_not_one", call, what=what)
    (text,) = texts
    if not text or text == "self" or text.count(".") > text.startswith("self."):
        raise UncertainError("model_without_name", call)
    home = program.home_of(nodes[0], text)
    if home != program.home_of(call, text):
        raise UncertainError("model_of_other_function", call, text=text)
    return home


def _values(program: Program, name: ast.Name) -> list[Value]:
    """What a name is set to in its scope, or else in its module."""
    scope, tree = program.scope_of(name), program.file(name).tree
    return program.values(scope, name.id) or program.values(tree, name.id)


def _op(op: Optional[ast.expr], model: str, plan: Plan, arguments: Arguments) -> list[str]:
    """Lines before the wrapping, for the ``op`` of the optimizer. Raises UncertainError for Adasum."""
    branches = [op.body, op.orelse] if isinstance(op, ast.IfExp) else [op] if op is not None else []
    names = [plan.program.name(branch).rpartition(".")[2] for branch in branches]
    if names in ([], ["Average"]):
        return []
    if isinstance(op, ast.IfExp) and sorted(names) == ["Adasum", "Average"]:
        test = plan.written(op.test)
        condition = test if names[0] == "Adasum" else f"not ({test})"
        plan.report("adasum", op)
        return [f'if {condition}:\n    raise NotImplementedError("torch.distributed has no Adasum")']
    if names == ["Sum"]:
        if not _is_default(plan.program, arguments, "compression"):
            raise UncertainError("compressed_and_summed", op, model=model)
        if not _is_one(arguments.get("backward_passes_per_step")):
            raise UncertainError("several_passes_summed", op, model=model)
        return []
    raise UncertainError("op_not_plain", op)


def _is_default(program: Program, arguments: Arguments, name: str) -> bool:
    return name not in arguments or is_default(program, name, arguments[name])


def _hooks(arguments: Arguments, model: str, plan: Plan) -> list[str]:
    """The line that registers a communication hook, where something else than an average is asked for."""
    op = arguments.get("op")
    if op is not None and plan.program.name(op) == f"{PACKAGE}.Sum":
        if plan.version < _HOOKS:
            raise UncertainError("hook_in_old_torch", op, model=model)
        return [f"{model}.register_comm_hook(None, hvd_sum_hook)"]
    if _is_default(plan.program, arguments, "compression"):
        return []
    value = arguments["compression"]
    if not _is_compression(plan.program, value):
        raise UncertainError("compression_not_horovod", value, model=model)
    hook = plan.written(value)
    if plan.version < _HOOKS:
        why = "on NPUs gradients are compressed from torch 2.1 on"
        return [f'if {hook} is not default_hooks.allreduce_hook:\n    raise NotImplementedError("{why}")']
    plan.report("fp16_rounding", value)
    return [f"{model}.register_comm_hook(None, {hook})"]


def _is_compression(program: Program, value: ast.expr) -> bool:
    """Whether an expression can only be one of hvd.Compression."""
    if isinstance(value, ast.IfExp):
        return _is_compression(program, value.body) and _is_compression(program, value.orelse)
    if program.name(value).startswith(f"{PACKAGE}.Compression."):
        return True
    bound = _values(program, value) if isinstance(value, ast.Name) else []
    return bool(bound) and all(one is not None and _is_compression(program, one) for one, _ in bound)


def _is_one(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and value.value == 1)


def _check_others(program: Program, arguments: Arguments) -> None:
    """Raises UncertainError for what DistributedDataParallel does not do."""
    sparse = arguments.get("sparse_as_dense")
    if sparse is not None and not (isinstance(sparse, ast.Constant) and not sparse.value):
        raise UncertainError("sparse_gradients", sparse)
    if not _is_default(program, arguments, "process_set"):
        raise UncertainError("process_set", arguments["process_set"])


def _check_passes(passes: ast.expr | None, wrapped: Wrapped, plan: Plan) -> None:
    """Several backward passes for a step: right without a change where each follows its own forward pass."""
    for call in plan.program.nodes(ast.Call):
        if method_name(call) != "backward":
            continue
        if not is_off(argument_of(call, "retain_graph")):
            raise UncertainError("retained_graph", call)
        if not _is_one(passes) and not _has_own_forward(plan.program, call, wrapped):
            raise UncertainError("own_forward_pass", call)
    if passes is not None and not _is_one(passes):
        plan.report("averaged_each_pass", passes, text=wrapped.home.text)


def _has_own_forward(program: Program, call: ast.Call, wrapped: Wrapped) -> bool:
    """Whether the innermost loop around a backward pass calls the model, and goes backward just once."""
    around = program.above(call)
    loop = next((up for _, up in around if isinstance(up, (*LOOPS, ast.FunctionDef))), None)
    if loop is None:
        return False
    backward = [one for one in ast.walk(loop) if isinstance(one, ast.Attribute) and one.attr == "backward"]
    return len(backward) == 1 and not below(loop).isdisjoint(wrapped.calls)


def plan_synchronize(plan: Plan) -> None:
    """``optimizer.synchronize()`` and what skips it: the gradients are reduced when backward() returns."""
    made = [only_target(plan.program.statement_of(call)) for call in plan.optimizers]
    names = set(map(dotted, made)) - {""}
    for node in plan.program.nodes(ast.Attribute):
        text = dotted(node.value)
        ours = text in names or bool(_OPTIMIZER.search(text))
        if node.attr == "skip_synchronize" or (
            ours and node.attr in ("synchronize", "set_backward_passes_per_step")
        ):
            _without_synchronize(node, plan)


def _without_synchronize(node: ast.Attribute, plan: Plan) -> None:
    program = plan.program
    statement, changes = program.statement_of(node), plan.of(node)
    own = program.own_line(statement)
    if isinstance(statement, ast.Expr) and statement.value is program.parent(node) and own:
        changes.removed.add(statement)
        if program.is_alone(statement):
            changes.after[statement] = ["pass"]
    elif isinstance(statement, ast.With) and len(statement.items) == 1 and own:
        changes.dissolved.add(statement)
    else:
        plan.refuse("synchronize_not_plain", node, name=node.attr)
        return
    message = _("backward() of a DistributedDataParallel model has reduced the gradients when it returns")
    plan.changed(statement if isinstance(statement, ast.Expr) else node, message, "DELETE")
