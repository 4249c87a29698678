"""hvd.DistributedOptimizer goes, and its synchronize(); DistributedDataParallel comes around the model."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import takewhile

from migrator.convert.draft import UncertainError
from migrator.convert.horovod.calls import PACKAGE, Plan, is_default, table
from migrator.convert.models import Wrapped, only_called_after, owners_behind, prepares
from migrator.convert.program import (
    LOOPS,
    Home,
    Program,
    below,
    dotted,
    given,
    is_after,
    is_main_guard,
    is_stored,
    method_name,
    parameters,
)
from migrator.convert.write import first_argument
from migrator.language import _
from migrator.names.conditions import in_other_branch
from migrator.names.tree import FUNCTIONS, Function, argument_of, is_off, only_target

_OPTIMIZER = re.compile(r"(?:^|[._])(?:opt|optim|optimizer)\w*$", re.I)
_HOOKS = (2, 1)  # register_comm_hook works on NPUs from there on (api_db; 1.11 has no get_future)

_DEPTH = 6
_MOVES = ("cuda", "to", "npu")
_MAY_TRAIN = re.compile(r"partial$|trainer|engine|learner|runner|worker|solver|agent|train|fit", re.I)
_EVALUATES = re.compile(r"\.eval\(\)|\bno_grad\b|\binference_mode\b|\btrain\(False\)")

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
    sparse = arguments.get("sparse_as_dense")
    if sparse is not None and not (isinstance(sparse, ast.Constant) and not sparse.value):
        raise UncertainError("sparse_gradients", sparse)
    if not is_default(program, "process_set", arguments.get("process_set")):
        raise UncertainError("process_set", arguments["process_set"])
    _check_passes(arguments.get("backward_passes_per_step"), wrapped, plan)
    if dotted(target) and dotted(target) == dotted(arguments["optimizer"]):
        plan.remove(statement)
    else:
        plan.of(call).edits += first_argument(program.file(call), call)
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


def _op(op: ast.expr | None, model: str, plan: Plan, arguments: Arguments) -> list[str]:
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
        if not is_default(plan.program, "compression", arguments.get("compression")):
            raise UncertainError("compressed_and_summed", op, model=model)
        if not _is_one(arguments.get("backward_passes_per_step")):
            raise UncertainError("several_passes_summed", op, model=model)
        return []
    raise UncertainError("op_not_plain", op)


def _hooks(arguments: Arguments, model: str, plan: Plan) -> list[str]:
    """The line that registers a communication hook, where something else than an average is asked for."""
    op = arguments.get("op")
    if op is not None and plan.program.name(op) == f"{PACKAGE}.Sum":
        if plan.version < _HOOKS:
            raise UncertainError("hook_in_old_torch", op, model=model)
        return [f"{model}.register_comm_hook(None, hvd_sum_hook)"]
    if is_default(plan.program, "compression", arguments.get("compression")):
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
    scopes = (program.scope_of(value), program.file(value).tree) if isinstance(value, ast.Name) else ()
    bound = next(filter(None, (program.values(scope, dotted(value)) for scope in scopes)), [])
    return bool(bound) and all(one is not None and _is_compression(program, one) for one, _ in bound)


def _is_one(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and value.value == 1)


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
    statement = program.statement_of(node)
    own = program.own_line(statement)
    if isinstance(statement, ast.Expr) and statement.value is program.parent(node) and own:
        plan.remove(statement, ["pass"] * program.is_alone(statement))
    elif isinstance(statement, ast.With) and len(statement.items) == 1 and own:
        plan.of(node).dissolved.add(statement)
    else:
        plan.refuse("synchronize_not_plain", node, name=node.attr)
        return
    message = _("backward() of a DistributedDataParallel model has reduced the gradients when it returns")
    plan.changed(statement if isinstance(statement, ast.Expr) else node, message, "DELETE")


# -- the model: no training may go past its wrapper, under whatever name -----------------------------------


def follow(program: Program, home: Home, behind: ast.stmt) -> Wrapped:
    """What becomes of the uses of a model that is wrapped behind a statement.

    Raises UncertainError where some of the training might go past the wrapper.
    """
    _check_before(program, home, behind)
    _check_outside(program, home)
    wrapped = Wrapped(program, home, behind)
    seen = wrapped.follow(lambda one, node, up: _attribute(program, one, node, up, wrapped))
    for one in seen:
        if one.text.startswith("self."):
            _from_outside(program, one, wrapped)
    if not wrapped.calls:
        raise UncertainError("call_not_seen", behind, home=home)
    around = takewhile(lambda up: not isinstance(up, FUNCTIONS), program.around(behind, ast.AST))
    # There may be ways past the statement, on which the model stays bare.
    conditional = not all(is_main_guard(up) or isinstance(up, (ast.With, ast.Module)) for up in around)
    for node, perhaps in list(wrapped.inner.items()):
        wrapped.inner[node] = perhaps or conditional or _may_be_bare(program, node, wrapped, seen)
    return wrapped


def _attribute(program: Program, home: Home, node: ast.expr, up: ast.Attribute, wrapped: Wrapped) -> None:
    """Judge ``model.something``."""
    chain: ast.expr = up
    last = up.attr
    above = program.parent(chain)
    while isinstance(above, (ast.Attribute, ast.Subscript)) and above.value is chain:
        chain, above = above, program.parent(above)
        last = chain.attr if isinstance(chain, ast.Attribute) else last
    called = isinstance(above, ast.Call) and above.func is chain
    if up.attr in _MOVES and called and chain is up:
        scope = program.scope_of(node)
        here = scope is program.scope_of(wrapped.behind)
        if here or only_called_after(program, scope, wrapped.behind):
            raise UncertainError("moved_behind", up, home=home)
        return  # it is the bare model's, or moves the one inside
    if up.attr in table("same_when_wrapped") and chain is up:
        if up.attr == "forward":
            wrapped.calls.append(node)
        if not (called and above is not None and isinstance(program.parent(above), ast.Attribute)):
            return
    given = isinstance(above, ast.Call) and called and bool(above.args or above.keywords)
    computes = given and last not in {*table("module_methods"), *table("same_when_wrapped")}
    if computes and not {"weight", "bias", "data"} & set(dotted(chain).split(".")):
        if not _evaluates(program, node):
            raise UncertainError("submodule_called", above, home=home, last=last, called=dotted(chain))
    wrapped.inner[node] = False


def _from_outside(program: Program, home: Home, wrapped: Wrapped) -> None:
    """``trainer.model.state_dict()``: an attribute of another object that may be the wrapped model."""
    mine = program.uses(home)
    for node in program.nodes(ast.Attribute):
        if node.attr == home.text.partition(".")[2] and node not in mine and not is_stored(node):
            up = program.parent(node)
            if isinstance(up, ast.Attribute) and up.attr in ("state_dict", "load_state_dict"):
                wrapped.inner[node] = True


def _may_be_bare(program: Program, node: ast.expr, wrapped: Wrapped, seen: list[Home]) -> bool:
    """Whether what is wrapped when the program trains may be the bare model at other times."""
    scope, text = program.scope_of(node), dotted(node)
    if wrapped.is_made_in(scope):
        return False
    if isinstance(scope, ast.Module):
        return program.file(node) is not program.file(wrapped.behind)
    if text not in parameters(scope):
        return not only_called_after(program, scope, wrapped.behind)
    given = wrapped.bare_arguments(node, seen)
    return not given or any(given)


# -- other names by which the model could be trained ------------------------


def _check_before(program: Program, home: Home, behind: ast.stmt) -> None:
    """Before it is wrapped nothing may have got hold of the bare model that could train it."""
    scope, values = program.scope_of(behind), program.values(*home)
    for value, _place in values:
        if not _is_only_name(program, value, home):
            raise UncertainError("other_name", value or behind, home=home)
    if not values and not home.is_parameter:
        raise UncertainError("origin_not_seen", behind, home=home)
    for node in program.uses(home):
        if program.scope_of(node) is not scope:
            continue
        if is_stored(node):
            if is_after(node, behind):
                raise UncertainError("set_anew", node, home=home)
        elif not is_after(node, behind) and node not in below(behind):
            prepared = prepares(program, node) and not _is_kept(program, node)
            if not prepared and not _stays(program, home, node) and not _evaluates(program, node):
                raise UncertainError("used_before", node, home=home)


def _is_only_name(program: Program, value: ast.expr | None, home: Home) -> bool:
    """Whether what a name is set to is new, or had that name before."""
    if isinstance(value, ast.IfExp):
        return _is_only_name(program, value.body, home) and _is_only_name(program, value.orelse, home)
    if isinstance(value, ast.Call) or dotted(value) == home.text:
        return True
    return isinstance(home.scope, ast.ClassDef) and _function_with_parameter(program, value) is not None


def _stays(program: Program, home: Home, node: ast.expr) -> bool:
    """Whether a name is set to itself under a condition: ``model = model.cuda() if cuda else model``."""
    up = program.parent(node)
    while isinstance(up, ast.IfExp):
        up = program.parent(up)
    return isinstance(up, ast.Assign) and [dotted(one) for one in up.targets] == [home.text]


def _is_kept(program: Program, node: ast.AST) -> bool:
    """Whether the model goes to something of another package that, by its name, may train it later."""
    call = program.taker_of(node)
    if not isinstance(call, ast.Call) or program.definition_of(call) is not None:
        return False
    name = program.name(call) or dotted(call.func)
    return bool(_MAY_TRAIN.search(name)) and not name.startswith("torch.")


def _function_with_parameter(program: Program, value: ast.expr | None) -> Function | None:
    """The function of which a value is a parameter: who gives it is looked at, too."""
    scope = program.scope_of(value) if isinstance(value, ast.Name) else None
    return scope if isinstance(scope, FUNCTIONS) and dotted(value) in parameters(scope) else None


def _check_outside(program: Program, home: Home, depth: int = _DEPTH) -> None:
    """Who hands in the model may not train it by itself: its name keeps the bare one."""
    for scope, name in _taken_from(program, home):
        sites = program.call_sites(scope)
        if not sites or not depth:
            raise UncertainError("caller_not_seen", scope, scope=scope, name=name, home=home)
        for call in sites:
            value = program.argument(call, scope, name)
            if isinstance(value, ast.Call):
                continue
            text = dotted(value)
            if value is None or not text or text.count(".") > text.startswith("self."):
                raise UncertainError("argument_not_plain", call, scope=scope, name=name, home=home)
            outer = program.home_of(value, text)
            owners = {scope, program.class_of(scope) or scope}
            for node in program.uses(outer):
                goes_to = program.definition_of(program.taker_of(node))
                mine = node is value or is_stored(node) or goes_to in owners
                if not (mine or prepares(program, node) or _evaluates(program, node)):
                    raise UncertainError("not_the_wrapped", node, outer=outer)
            _check_outside(program, outer, depth - 1)


def _taken_from(program: Program, home: Home) -> Iterator[tuple[ast.AST, str]]:
    """The functions, each with its parameter, through which a model comes to its name."""
    for value, _place in program.values(*home) if isinstance(home.scope, ast.ClassDef) else ():
        function = _function_with_parameter(program, value)
        if function is not None:
            yield function, dotted(value)
    if home.is_parameter:
        yield home.scope, home.text


def _evaluates(program: Program, node: ast.AST) -> bool:
    """Whether a use stands in a function, or goes to one, that only evaluates."""
    call = program.taker_of(node)
    called = program.function_of(call) if isinstance(call, ast.Call) and call.func is not node else None
    for function in (program.scope_of(node), called):
        text = program.segment(function) if isinstance(function, FUNCTIONS) else ""
        if _EVALUATES.search(text) and ".backward(" not in text:
            return True
    return False
