"""apex.amp: the whole of a file's use becomes torch's autocast and GradScaler, or is reported.

``amp.initialize`` casts what all of torch computes from then on, so autocast is switched on there for all
that follows, without its cache (which a context would empty at its end). ``amp.scale_loss`` unscales the
gradients at its end, ``GradScaler.step`` does it by itself: an ``unscale_`` goes between them where a program
looks at gradients there. apex skips a step after an overflow in ``optimizer.step()``, GradScaler in its own.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Optional

from migrator.api_support.versions import in_range
from migrator.files.source import newline_of
from migrator.findings.finding import Edit
from migrator.language import _
from migrator.matchers.context import FileContext, Match, found, insertion, instead_of
from migrator.matchers.kinds.call import is_replaced
from migrator.matchers.kinds.library import every_import
from migrator.matchers.moved_imports import move_names
from migrator.matchers.npu_import import insert_import, statement_separator
from migrator.matchers.packs import Rule
from migrator.names.execution import in_other_branch
from migrator.names.index import ModuleIndex
from migrator.names.tree import (
    FUNCTIONS,
    argument_of,
    arguments_of,
    called_name,
    hands_on,
    holder_of,
    imported,
    is_none,
    last_name,
    root,
    string_value,
)
from migrator.names.ways import is_inside

_AMP = "apex.amp"
_SCALER = "amp_scaler"
# Of amp.initialize: what GradScaler and autocast decide by themselves.
_DROPPED = frozenset(
    {"loss_scale", "min_loss_scale", "max_loss_scale", "keep_batchnorm_fp32", "master_weights"}
    | {"patch_torch_functions", "verbosity"}
)
_GRADIENTS = re.compile(r"\bclip_grad|\.grad\b")
_OWN_WAY = re.compile(r"\bGradScaler\b|\bautocast\b")


@dataclass
class _Uses:
    """Where a file uses apex.amp, by what is called; ``others`` have no equivalent."""

    starts: list[ast.Call] = field(default_factory=list)
    scaled: list[ast.With] = field(default_factory=list)
    parameters: list[ast.Call] = field(default_factory=list)
    states: list[ast.Call] = field(default_factory=list)
    others: list[ast.expr] = field(default_factory=list)
    all: list[tuple[ast.expr, str]] = field(default_factory=list)


class _StaysError(Exception):
    """Why a file's use of apex.amp is not converted, as a clause."""


def find(context: FileContext, rule: Rule) -> Iterator[Match]:
    """All changes of a file, or each import and each call with the reason why they stay."""
    if context.project.owns(_AMP, context.name):
        return
    uses = _uses_of_amp(context.index)
    if uses.all:
        try:
            yield from list(_converted(context, rule, uses))
            return
        except _StaysError as why:
            advice = f"{rule.advice} {_('It stays here as {why}.', why=why)}"
    else:
        advice = rule.advice
    yield from every_import(context, [rule])
    for node, name in uses.all:
        call = context.index.call_of(node)
        if call is not None and not is_replaced(context, rule, call, name):
            yield found(context, rule, call, api=name, advice=advice)


def _uses_of_amp(index: ModuleIndex) -> _Uses:
    uses = _Uses()
    for ref in index.refs:
        node, name = ref, index.qualified_name(ref)
        if not name.startswith(f"{_AMP}.") and name != _AMP:
            continue
        if isinstance(getattr(node, "ctx", None), ast.Load):
            uses.all.append((node, name))
            _sort(index, uses, node, name.removeprefix(f"{_AMP}."))
    return uses


def _sort(index: ModuleIndex, uses: _Uses, node: ast.expr, name: str) -> None:
    call = index.call_of(node)
    around = index.parent(index.parent(call)) if call is not None else index.parent(node)
    if call is not None and name == "initialize":
        uses.starts.append(call)
    elif call is not None and name == "scale_loss" and isinstance(around, ast.With):
        uses.scaled.append(around)
    elif call is not None and name == "master_params" and len(call.args) == 1:
        uses.parameters.append(call)
    elif call is not None and name in ("state_dict", "load_state_dict"):
        uses.states.append(call)
    elif not (name == _AMP and isinstance(around, ast.Compare) and is_none(around.comparators[0])):
        uses.others.append(node)


def _converted(context: FileContext, rule: Rule, uses: _Uses) -> Iterator[Match]:
    """The changes; raises _StaysError where a use has another shape than those that are known."""
    index = context.index
    if not in_range(">=2.4", context.version.tuple):
        raise _StaysError(_("torch.set_autocast_enabled takes a device since torch 2.4"))
    if not any(name.partition(".")[0] == "apex" for each in index.imports for name in imported(each)):
        raise _StaysError(_("another file of the project imports it"))
    if uses.others:
        raise _StaysError(_("{name} has no equivalent there", name=ast.unparse(uses.others[0])))
    if _OWN_WAY.search(index.text) or _SCALER in index.text:
        raise _StaysError(_("the file uses torch's own mixed precision as well"))
    if not uses.starts:
        raise _StaysError(_("another file calls amp.initialize"))
    if any(index.qualified_name(root(node)) != _AMP for node, _ in uses.all):
        raise _StaysError(_("it is not imported with `from apex import amp`"))
    imports = [each for each in index.imports if _AMP in imported(each)]
    if any(len(each.names) > 1 for each in imports):
        raise _StaysError(_("its import brings other names of apex, too"))
    optimizer = _optimizer(uses)
    started = [_Start.of(context, call) for call in uses.starts]
    if not uses.scaled and any(start.has_optimizer for start in started):
        raise _StaysError(_("another file calls amp.scale_loss"))
    for node in imports:
        edits = [move_names(index, node, {"amp": "torch.npu.amp"})]
        yield found(context, rule, node, api=_AMP, edits=edits, needs_npu=False)
    if optimizer:
        yield _first_scaler(context, rule)
    for start in started:
        edits = [instead_of(index, start.statement, start.written(index, bool(optimizer)))]
        yield found(context, rule, start.statement, api=f"{_AMP}.initialize", edits=edits)
    for each in uses.scaled:
        yield _scaled(context, rule, each)
    yield from _steps(context, rule, uses, optimizer)
    for call in uses.parameters:
        text = f'[p for group in {optimizer}.param_groups for p in group["params"]]'
        yield found(context, rule, call, api=f"{_AMP}.master_params", edits=[instead_of(index, call, text)])
    for call in uses.states:
        edits = [instead_of(index, call.func, f"{_SCALER}.{called_name(call)}")]
        yield found(context, rule, call, api=f"{_AMP}.{called_name(call)}", edits=edits)


def _optimizer(uses: _Uses) -> str:
    """The optimizer that all of a file scales for, as it is written; empty where nothing is scaled."""
    calls = [_scaling(each) for each in uses.scaled]
    if any(len(call.args) != 2 or call.keywords for call in calls):
        raise _StaysError(_("amp.scale_loss is given more than a loss and an optimizer"))
    written = {ast.unparse(call.args[1]) for call in calls} | {
        ast.unparse(call.args[0]) for call in uses.parameters
    }
    if len(written) > 1 or any("[" in each for each in written):
        raise _StaysError(_("it scales for several optimizers"))
    if not calls and (uses.parameters or uses.states):
        raise _StaysError(_("another file calls amp.scale_loss"))
    return next(iter(written), "")


def _scaling(node: ast.With) -> ast.Call:
    call = node.items[0].context_expr
    assert isinstance(call, ast.Call)
    return call


class _Start(NamedTuple):
    """A statement with amp.initialize; ``enabled`` is the condition as source, empty for always."""

    statement: ast.stmt
    amp: str
    torch: str
    enabled: str
    kept: str
    has_optimizer: bool

    @classmethod
    def of(cls, context: FileContext, call: ast.Call) -> _Start:
        """Read a call; raises _StaysError where its arguments say more than is known."""
        index = context.index
        statement = index.parent(call)
        is_plain = not hands_on(call) and 1 <= len(call.args) <= 2
        if not isinstance(statement, (ast.Assign, ast.Expr)) or not is_plain:
            raise _StaysError(_("amp.initialize is called in another way"))
        given = {keyword.arg or "": keyword.value for keyword in call.keywords}
        if not given.keys() <= _DROPPED | {"opt_level", "enabled"}:
            raise _StaysError(_("amp.initialize is given {name}", name=min(given.keys() - _DROPPED)))
        level, conditions = given.get("opt_level"), []
        if "enabled" in given:
            conditions.append(index.segment(given["enabled"]))
        if string_value(level) == "O3":
            raise _StaysError(_('"O3" computes all in float16: write model.half()'))
        if level is not None and string_value(level) is None:
            conditions.append(f'{index.segment(level)} != "O0"')
        elif string_value(level) == "O0":
            conditions.append("False")
        enabled = " and ".join(conditions if len(conditions) < 2 else [f"({each})" for each in conditions])
        optimizer = call.args[1] if len(call.args) == 2 else None
        has_optimizer = not (optimizer is None or is_none(optimizer) or ast.unparse(optimizer) == "[]")
        return cls(
            statement,
            index.segment(call.func).removesuffix(".initialize"),
            _torch(index),
            enabled,
            _kept(index, statement, call),
            has_optimizer,
        )

    def written(self, index: ModuleIndex, scales: bool) -> str:
        """What stands in place of the statement."""
        lines = []
        if scales:
            if index.function_of(self.statement) is not None:
                lines.append(f"global {_SCALER}")
            given = f"enabled={self.enabled}" if self.enabled else ""
            lines.append(f"{_SCALER} = {self.amp}.GradScaler({given})")
        enabled = f"{_SCALER}.is_enabled()" if scales and self.enabled else self.enabled or "True"
        lines.append(f'{self.torch}.set_autocast_enabled("npu", {enabled})')
        lines.append(f"{self.torch}.set_autocast_cache_enabled(False)")
        lines += [self.kept] if self.kept else []
        return statement_separator(index, self.statement).join(lines)


def _kept(index: ModuleIndex, statement: ast.stmt, call: ast.Call) -> str:
    """The assignment without the call; empty where it gives names what they have."""
    if not isinstance(statement, ast.Assign):
        return ""
    if len(statement.targets) != 1:
        raise _StaysError(_("amp.initialize is assigned to several targets"))
    target = statement.targets[0]
    targets = [ast.unparse(each) for each in getattr(target, "elts", [target])]
    given = [ast.unparse(each) for each in call.args]
    if not isinstance(target, ast.Tuple) and len(given) == 2:
        raise _StaysError(_("the result of amp.initialize is not unpacked"))
    if [each.strip("[]()") for each in targets] == [each.strip("[]()") for each in given]:
        return ""
    return f"{index.segment(target)} = {', '.join(index.segment(each) for each in call.args)}"


def _first_scaler(context: FileContext, rule: Rule) -> Match:
    """The scaler that does nothing until amp.initialize is reached, behind the imports of the module."""
    index = context.index
    body = index.tree.body
    place = max((number for number, each in enumerate(body) if _imports(each)), default=-1)
    ends = [number for number, each in enumerate(body) if isinstance(each, (*FUNCTIONS, ast.ClassDef))]
    place = max((n for n in range(min([place + 1, *ends])) if _imports(body[n])), default=-1)
    if place + 1 == len(body):
        raise _StaysError(_("the file does nothing but import"))
    following = body[place + 1]
    decorators = getattr(following, "decorator_list", [])
    start = index.start(decorators[0]) - 1 if decorators else index.start(following)
    gap = newline_of(index.text) * (3 if isinstance(following, (*FUNCTIONS, ast.ClassDef)) else 1)
    text = f"{_SCALER} = {_torch(index)}.npu.amp.GradScaler(enabled=False){gap}"
    return insertion(
        context, rule, following, Edit(start, start, text), api=f"{_AMP}.initialize", safety="unsafe"
    )


def _torch(index: ModuleIndex) -> str:
    """The name under which all of a module knows torch."""
    for name, bound in index.module_scope.bindings.items():
        if {(each.kind, each.name) for each in bound} == {("import", "torch")}:
            if any(isinstance(index.parent(each.node), ast.Module) for each in bound):
                return name
    raise _StaysError(_("torch is not imported at the top of the file"))


def _imports(node: ast.stmt) -> bool:
    """Whether a statement of a module imports, perhaps only where something is there."""
    inside = [node, *getattr(node, "body", [])] if isinstance(node, (ast.Try, ast.If)) else [node]
    return any(isinstance(each, (ast.Import, ast.ImportFrom)) for each in inside)


def _scaled(context: FileContext, rule: Rule, node: ast.With) -> Match:
    """``with amp.scale_loss(loss, optimizer) as scaled:`` and what its body does with the scaled loss."""
    index, call = context.index, _scaling(node)
    name, loss = node.items[0].optional_vars, call.args[0]
    if not isinstance(name, ast.Name) or len(node.items) != 1:
        raise _StaysError(_("amp.scale_loss is used in another way"))
    for statement in node.body:
        index.expand(statement)
    inside = [part for part in ast.walk(node) if isinstance(part, ast.Name) and part.id == name.id]
    uses = [part for part in inside if isinstance(part.ctx, ast.Load) and part not in list(ast.walk(call))]
    simple = isinstance(loss, (ast.Name, ast.Attribute, ast.Subscript))
    if not uses or not (simple or len(uses) == 1):
        raise _StaysError(_("the scaled loss is used in another way"))
    if name.id != ast.unparse(loss):
        outside = [each for each in index.uses_of(name) if each not in inside]
        scaled = [each for each in outside if not _bound_by_scaling(index, each)]
        if scaled:
            raise _StaysError(_("the scaled loss is used behind its block"))
    edits = [
        Edit(index.start(call), index.end(name), f'{_torch(index)}.autocast("npu", enabled=False)'),
        *(instead_of(index, use, f"{_SCALER}.scale({index.segment(loss)})") for use in uses),
    ]
    return found(context, rule, node, api=f"{_AMP}.scale_loss", edits=edits)


def _bound_by_scaling(index: ModuleIndex, use: ast.Name) -> bool:
    """Whether a name stands in a block that binds it, as several blocks give it the same one."""
    return any(
        isinstance(each, ast.With) and last_name(each.items[0].optional_vars) == use.id
        for each in index.above(use)
    )


def _steps(context: FileContext, rule: Rule, uses: _Uses, optimizer: str) -> Iterator[Match]:
    """The optimizer's steps, and what unscales its gradients before a program looks at them."""
    if not optimizer:
        return
    index = context.index
    steps = [step for step, holder in _own_steps(index) if ast.unparse(holder) == optimizer]
    functions = {index.function_of(each) for each in uses.scaled}
    beside = [step for step in steps if index.function_of(step) in functions]
    looks = bool(uses.parameters) or _GRADIENTS.search(index.text) is not None
    if (beside and {index.function_of(step) for step in beside} != functions) or not (beside or steps):
        raise _StaysError(_("the optimizer's step is elsewhere"))
    if looks and not beside:
        raise _StaysError(
            _("the optimizer's step is in another function than what its gradients are used for")
        )
    for function in functions:
        _check_losses(index, uses, function)
    for step in beside or steps:
        text = f"{_SCALER}.step({optimizer}){statement_separator(index, step)}{_SCALER}.update()"
        yield found(context, rule, step, api=f"{_AMP}.scale_loss", edits=[instead_of(index, step, text)])
    if looks:
        regions = [_Unscaled.before(index, uses, step) for step in beside]
        for function in functions:
            yield from _gradients(context, rule, uses, function, regions)
        for region in regions:
            if region.is_used:
                edit = region.edit(index, f"{_SCALER}.unscale_({optimizer})")
                yield found(context, rule, region.statement, api=f"{_AMP}.scale_loss", edits=[edit])


def _own_steps(index: ModuleIndex) -> Iterator[tuple[ast.Expr, ast.expr]]:
    """The statements ``x.step()``, each with what steps."""
    for call in index.calls:
        statement, holder = index.parent(call), holder_of(call)
        if holder is not None and called_name(call) == "step" and not arguments_of(call):
            if isinstance(statement, ast.Expr):
                yield statement, holder


def _check_losses(index: ModuleIndex, uses: _Uses, function: Optional[ast.AST]) -> None:
    """Every loss of the function is scaled, or another one is where amp is on."""
    for call in index.calls:
        if called_name(call) != "backward" or index.function_of(call) is not function:
            continue
        around = set(map(id, index.above(call)))
        if any(id(each) in around or in_other_branch(index, call, each) for each in uses.scaled):
            continue
        raise _StaysError(_("a loss is used without amp.scale_loss, too"))


@dataclass
class _Unscaled:
    """Where gradients are unscaled: ``behind`` a statement or before it, until the step at ``end``."""

    statement: ast.stmt
    behind: bool
    start: int
    end: int
    is_used: bool = False

    @classmethod
    def before(cls, index: ModuleIndex, uses: _Uses, step: ast.Expr) -> _Unscaled:
        """Behind what scales, or first in the step's block, where that runs less often."""
        block, end = index.block(step), index.start(step)
        for around in (step, *index.above(step)):
            if isinstance(around, (*FUNCTIONS, ast.Module)):
                break
            before = list(index.before(around))
            near = [each for each in uses.scaled if is_inside(index, each, before)]
            if near and around is not step:
                return cls(block[0], False, index.start(block[0]), end)
            if near:
                places = {id(place): place for each in near if (place := _repeated(index, each, before))}
                if len(places) > 1:
                    raise _StaysError(_("several losses are scaled for one step"))
                place = next(iter(places.values()))
                return cls(place, True, index.end(place), end)
        raise _StaysError(_("the optimizer's step does not follow amp.scale_loss"))

    def edit(self, index: ModuleIndex, text: str) -> Edit:
        """The edit that unscales."""
        if self.behind:
            return insert_import(index, self.statement, text)
        return Edit(self.start, self.start, text + statement_separator(index, self.statement))


def _repeated(index: ModuleIndex, node: ast.With, block: list[ast.stmt]) -> ast.stmt:
    """The outermost loop around a node that is in a block, or the node."""
    outermost: ast.stmt = node
    for around in (node, *index.above(node)):
        if isinstance(around, (ast.For, ast.While)):
            outermost = around
        if around in block:
            break
    return outermost


def _gradients(
    context: FileContext, rule: Rule, uses: _Uses, function: Optional[ast.AST], regions: list[_Unscaled]
) -> Iterator[Match]:
    """Gradients are looked at where they are unscaled, or clipped to a norm that is scaled as they are."""
    index = context.index
    own = [each for each in uses.scaled if index.function_of(each) is function]
    first, last = min(map(index.start, own)), max(region.end for region in regions)
    start, stop = index.span(function) if function is not None else (0, len(index.data))
    text = index.data[start:stop].decode("utf-8")
    places = [start + len(text[: each.start()].encode("utf-8")) for each in _GRADIENTS.finditer(text)]
    for place in [*places, *(index.start(call) for call in uses.parameters)]:
        inside = [region for region in regions if region.start <= place < region.end]
        for region in inside:
            region.is_used = True
        if inside or not (start <= place < stop and first < place < last):
            continue
        clip = next((each for each in index.calls if _is_clip(index, each, place)), None)
        if clip is None:
            raise _StaysError(_("gradients are used where GradScaler has not unscaled them"))
        norm = argument_of(clip, "max_norm", 1)
        if place in (index.start(call) for call in uses.parameters) or not norm:
            continue  # the call itself stands in another place of the list
        if not all(in_other_branch(index, clip, each) for each in own):
            edit = Edit(index.end(norm), index.end(norm), f" * {_SCALER}.get_scale()")
            yield found(context, rule, norm, api=f"{_AMP}.scale_loss", edits=[edit])


def _is_clip(index: ModuleIndex, call: ast.Call, place: int) -> bool:
    """Whether a statement at a place clips the norm of gradients."""
    start, end = index.span(call)
    if not start <= place < end or called_name(call) != "clip_grad_norm_":
        return False
    simple = (ast.Name, ast.Attribute, ast.Subscript, ast.Constant)
    return isinstance(index.parent(call), ast.Expr) and isinstance(argument_of(call, "max_norm", 1), simple)
