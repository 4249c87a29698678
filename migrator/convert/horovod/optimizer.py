"""hvd.DistributedOptimizer goes, and its synchronize(); DistributedDataParallel comes around the model."""

from __future__ import annotations

import ast
import re
from typing import Any

from migrator.convert.draft import UncertainError
from migrator.convert.horovod.calls import Plan, given, is_default
from migrator.convert.horovod.tables import PACKAGE, table
from migrator.convert.horovod.wrapped import follow
from migrator.convert.models import Home, Wrapped, home_of, parameters_in, use_the_model_inside
from migrator.convert.program import File, Program
from migrator.convert.syntax import LOOPS, dotted, ids, method_name
from migrator.convert.write import first_argument
from migrator.language import _
from migrator.names.tree import argument_of, only_target

_OPTIMIZER = re.compile(r"(?:^|[._])(?:opt|optim|optimizer)\w*$", re.I)
_HOOKS = (2, 1)  # register_comm_hook works on NPUs from there on (api_db; 1.11 has no get_future)


def plan_optimizer(program: Program, file: File, call: ast.Call, plan: Plan) -> None:
    """Plan it for one call of DistributedOptimizer. Raises UncertainError where it has no place."""
    statement: Any = file.index.statement_of(call)
    values = given(call, table("optimizer"))
    plain = only_target(statement) is not None and statement.value is call and file.own_line(statement)
    if not plain or values is None or "optimizer" not in values:
        raise UncertainError("optimizer_not_plain", file, call)
    arguments = {name: value for name, (_, value) in values.items()}
    home = _model_of(program, file, arguments, call)
    for other, place in plan.wrapped:
        if other.same(home) and not _exclusive(file, place, statement):
            raise UncertainError("several_optimizers", file, call, home=home)
    plan.wrapped.append((home, statement))
    wrapped = follow(program, home, statement)
    model = home.text
    lines = [
        *_op(file, arguments.get("op"), model, plan, arguments),
        f"{model} = DistributedDataParallel({model}, broadcast_buffers=False)",
        *_hooks(file, arguments, model, plan),
    ]
    _check_others(file, arguments)
    _passes(program, file, arguments, wrapped, plan)
    changes = plan.draft.of(file)
    target, inner = statement.targets[0], arguments["optimizer"]
    if dotted(target) and dotted(target) == dotted(inner):
        changes.removed.add(statement)
    else:
        changes.edits += first_argument(file.index, call)
        if values["optimizer"][0] != 0:
            raise UncertainError("optimizer_not_first", file, call)
    changes.after.setdefault(statement, []).extend(lines)
    for line in lines:
        plan.use(file, line)
    message = _("DistributedDataParallel averages the gradients, in the backward pass")
    plan.draft.changed(file, statement, message)
    message = _("the model inside of DistributedDataParallel: its keys stay")
    use_the_model_inside(plan.draft, wrapped, message)


def _model_of(program: Program, file: File, arguments: dict[str, Any], call: ast.Call) -> Home:
    """The model whose parameters are named, or else are the optimizer's."""
    places: list[tuple[File, Any]] = []
    for name in ("named_parameters", "optimizer"):
        value = arguments.get(name)
        if value is not None and not places:
            places = _mentioned(file, value, 4)
    texts = {(where.name, dotted(node)) for where, node in places}
    if len(texts) != 1:
        what = _("several models") if texts else _("a model that is not seen")
        raise UncertainError("model_not_one", file, call, what=what)
    where, node = places[0]
    text = dotted(node)
    if not text or text == "self" or text.count(".") > text.startswith("self.") or where is not file:
        raise UncertainError("model_without_name", file, call)
    home = home_of(program, file, node, text)
    if not home.same(home_of(program, file, call, text)):
        raise UncertainError("model_of_other_function", file, call, text=text)
    return home


def _exclusive(file: File, one: ast.stmt, other: ast.stmt) -> bool:
    """Whether two statements stand in the two branches of one condition."""
    for up in (file.parent(one), file.parent(other)):
        if isinstance(up, ast.If):
            branches = [ids(*block) for block in (up.body, up.orelse)]
            if any(id(one) in a and id(other) in b for a, b in (branches, branches[::-1])):
                return True
    return False


def _mentioned(file: File, value: Any, depth: int) -> list[tuple[File, Any]]:
    """The models whose parameters an expression asks for, directly or through names."""
    found = [(file, node) for node in parameters_in(value)]
    if found or not depth:
        return found
    for node in ast.walk(value):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            function = file.function_of(node)
            for bound, _ in file.bindings(function, node.id) or file.bindings(None, node.id):
                if bound is not None and not any(one is node for one in ast.walk(bound)):
                    found += _mentioned(file, bound, depth - 1)
    return found


def _op(file: File, op: Any, model: str, plan: Plan, arguments: dict[str, Any]) -> list[str]:
    """Lines before the wrapping, for the ``op`` of the optimizer. Raises UncertainError for Adasum."""
    branches = [op.body, op.orelse] if isinstance(op, ast.IfExp) else [op] if op is not None else []
    names = [file.index.qualified_name(branch).rpartition(".")[2] for branch in branches]
    if names in ([], ["Average"]):
        return []
    if sorted(names) == ["Adasum", "Average"]:
        test = plan.written(file, op.test)
        condition = test if names[0] == "Adasum" else f"not ({test})"
        plan.draft.report("adasum", file, op)
        return [f'if {condition}:\n    raise NotImplementedError("torch.distributed has no Adasum")']
    if names == ["Sum"]:
        if "compression" in arguments and not is_default(file, "compression", arguments["compression"]):
            raise UncertainError("compressed_and_summed", file, op, model=model)
        if not _is_one(arguments.get("backward_passes_per_step")):
            raise UncertainError("several_passes_summed", file, op, model=model)
        return []
    raise UncertainError("op_not_plain", file, op)


def _hooks(file: File, arguments: dict[str, Any], model: str, plan: Plan) -> list[str]:
    """The line that registers a communication hook, where something else than an average is asked for."""
    if file.index.qualified_name(arguments.get("op") or ast.Constant(None)) == f"{PACKAGE}.Sum":
        if plan.version < _HOOKS:
            raise UncertainError("hook_in_old_torch", file, arguments["op"], model=model)
        return [f"{model}.register_comm_hook(None, hvd_sum_hook)"]
    value = arguments.get("compression")
    if value is None or is_default(file, "compression", value):
        return []
    if not _is_compression(file, value):
        raise UncertainError("compression_not_horovod", file, value, model=model)
    hook = plan.written(file, value)
    if plan.version < _HOOKS:
        why = "on NPUs gradients are compressed from torch 2.1 on"
        return [f'if {hook} is not default_hooks.allreduce_hook:\n    raise NotImplementedError("{why}")']
    plan.draft.report("fp16_rounding", file, value)
    return [f"{model}.register_comm_hook(None, {hook})"]


def _is_compression(file: File, value: Any) -> bool:
    """Whether an expression can only be one of hvd.Compression."""
    if isinstance(value, ast.IfExp):
        return _is_compression(file, value.body) and _is_compression(file, value.orelse)
    if file.index.qualified_name(value).startswith(f"{PACKAGE}.Compression."):
        return True
    if isinstance(value, ast.Name):
        bound = file.bindings(file.function_of(value), value.id) or file.bindings(None, value.id)
        return bool(bound) and all(one is not None and _is_compression(file, one) for one, _ in bound)
    return False


def _is_one(value: Any) -> bool:
    return value is None or (isinstance(value, ast.Constant) and value.value == 1)


def _check_others(file: File, arguments: dict[str, Any]) -> None:
    """Raises UncertainError for what DistributedDataParallel does not do."""
    sparse = arguments.get("sparse_as_dense")
    if sparse is not None and not (isinstance(sparse, ast.Constant) and not sparse.value):
        raise UncertainError("sparse_gradients", file, sparse)
    group = arguments.get("process_set")
    if group is not None and not is_default(file, "process_set", group):
        raise UncertainError("process_set", file, group)


def _passes(program: Program, file: File, arguments: dict[str, Any], wrapped: Wrapped, plan: Plan) -> None:
    """Several backward passes for a step: right without a change where each follows its own forward pass."""
    passes = arguments.get("backward_passes_per_step")
    for one, call in program.nodes(ast.Call):
        if method_name(call) != "backward":
            continue
        retains = argument_of(call, "retain_graph")
        if retains is not None and getattr(retains, "value", None) is not False:
            raise UncertainError("retained_graph", one, call)
        if not _is_one(passes) and not _has_own_forward(call, wrapped):
            raise UncertainError("own_forward_pass", one, call)
    if not _is_one(passes):
        plan.draft.report("averaged_each_pass", file, passes, text=wrapped.home.text)


def _has_own_forward(call: ast.Call, wrapped: Wrapped) -> bool:
    """Whether the innermost loop around a backward pass calls the model, and goes backward just once."""
    around = wrapped.home.file.above(call)
    loop = next((up for _, up in around if isinstance(up, (*LOOPS, ast.FunctionDef))), None)
    if loop is None:
        return False
    backward = [one for one in ast.walk(loop) if isinstance(one, ast.Attribute) and one.attr == "backward"]
    return len(backward) == 1 and any(id(node) in ids(loop) for _, node in wrapped.calls)


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
                _without_synchronize(file, node, plan)


def _without_synchronize(file: File, node: Any, plan: Plan) -> None:
    statement: Any = file.index.statement_of(node)
    call = file.parent(node)
    if isinstance(statement, ast.Expr) and statement.value is call and file.own_line(statement):
        plan.draft.of(file).removed.add(statement)
        if file.is_alone(statement):
            plan.draft.of(file).after[statement] = ["pass"]
    elif isinstance(statement, ast.With) and len(statement.items) == 1 and file.own_line(statement):
        plan.draft.of(file).dissolved.add(statement)
    else:
        plan.refuse("synchronize_not_plain", file, node, name=node.attr)
        return
    message = _("backward() of a DistributedDataParallel model has reduced the gradients when it returns")
    plan.draft.changed(file, statement if isinstance(statement, ast.Expr) else node, message, "DELETE")
