"""apex.amp: the whole of a file's use becomes torch's autocast and GradScaler, or is reported.

``amp.initialize`` casts what all of torch computes from then on, so autocast is switched on there for all
that follows, without its cache (which a context would empty at its end). ``amp.scale_loss`` unscales the
gradients at its end, ``GradScaler.step`` does it by itself: an ``unscale_`` goes between them where a program
looks at gradients there. apex skips a step after an overflow in ``optimizer.step()``, GradScaler in its own.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Optional

from migrator.api_support.versions import in_range
from migrator.files.source import newline_of
from migrator.findings.finding import Edit
from migrator.language import _
from migrator.matchers.context import FileContext, Match, found, insertion, instead_of
from migrator.matchers.kinds.library import every_import
from migrator.matchers.npu_import import insert_import, move_names, statement_separator
from migrator.matchers.packs import Rule
from migrator.matchers.query.uses import is_replaced
from migrator.names.conditions import in_other_branch, is_inside
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

_AMP = "apex.amp"
_SCALER = "amp_scaler"
# Of amp.initialize: what GradScaler and autocast decide by themselves.
_DROPPED = frozenset(
    {"loss_scale", "min_loss_scale", "max_loss_scale", "keep_batchnorm_fp32", "master_weights"}
    | {"patch_torch_functions", "verbosity"}
)
_GRADIENTS = re.compile(r"\bclip_grad|\.grad\b")
_OWN_WAY = re.compile(r"\bGradScaler\b|\bautocast\b")
_SIMPLE = (ast.Name, ast.Attribute, ast.Subscript)
_DEFINITIONS = (*FUNCTIONS, ast.ClassDef)


class _StaysError(Exception):
    """Why a file's use of apex.amp is not converted, as a clause."""


def _stays_if(reasons: Mapping[str, object]) -> None:
    """Raise _StaysError with the first reason that applies."""
    for why, applies in reasons.items():
        if applies:
            raise _StaysError(why)


def find(context: FileContext, rule: Rule) -> Iterator[Match]:
    """All changes of a file, or each import and each call with the reason why they stay."""
    index = context.index
    every, advice = [*context.uses_of(rule)], rule.advice
    if every:
        try:
            yield from [*_File(context, rule, every).converted()]
            return
        except _StaysError as why:
            advice = f"{rule.advice} {_('It stays here as {why}.', why=why)}"
    yield from every_import(context, [rule])
    for node, name in every:
        call = index.call_of(node)
        if call is not None and not is_replaced(context, rule, call):
            yield found(context, rule, call, api=name, advice=advice)


class _File:
    """Where a file uses apex.amp; its methods raise _StaysError for a use that has another shape than known.

    ``optimizer`` is the one that all of the file scales for, as it is written; empty where nothing is scaled.
    """

    def __init__(self, context: FileContext, rule: Rule, every: Sequence[tuple[ast.expr, str]]) -> None:
        self.context, self.rule, self.index, self.every = context, rule, context.index, every
        self.starts: list[ast.Call] = []
        self.scaled: list[ast.With] = []
        self.parameters: list[ast.Call] = []
        self.states: list[ast.Call] = []
        self.others: list[ast.expr] = []
        self.optimizer = ""
        for node, name in every:
            self._sort(node, name.removeprefix(f"{_AMP}."))

    def _sort(self, node: ast.expr, name: str) -> None:
        call = self.index.call_of(node)
        around = self.index.parent(self.index.parent(call) if call is not None else node)
        if call is not None and name == "initialize":
            self.starts.append(call)
        elif call is not None and name == "scale_loss" and isinstance(around, ast.With):
            self.scaled.append(around)
        elif call is not None and name == "master_params" and len(call.args) == 1:
            self.parameters.append(call)
        elif call is not None and name in ("state_dict", "load_state_dict"):
            self.states.append(call)
        elif not (name == _AMP and isinstance(around, ast.Compare) and is_none(around.comparators[0])):
            self.others.append(node)

    def _found(self, node: ast.AST, name: str, *edits: Edit) -> Match:
        return found(self.context, self.rule, node, api=f"{_AMP}.{name}", edits=edits)

    def converted(self) -> Iterator[Match]:
        """The changes."""
        index = self.index
        imports = [each for each in index.imports if _AMP in imported(each)]
        packages = {name.partition(".")[0] for each in index.imports for name in imported(each)}
        other = ast.unparse(self.others[0]) if self.others else ""
        is_new = in_range(">=2.4", self.context.version.tuple)
        is_torchs = _OWN_WAY.search(index.text) or _SCALER in index.text
        is_named = all(index.qualified_name(root(node)) == _AMP for node, _name in self.every)
        reasons = {
            _("torch.set_autocast_enabled takes a device since torch 2.4"): not is_new,
            _("another file of the project imports it"): "apex" not in packages,
            _("{name} has no equivalent there", name=other): other,
            _("the file uses torch's own mixed precision as well"): is_torchs,
            _("another file calls amp.initialize"): not self.starts,
            _("it is not imported with `from apex import amp`"): not is_named,
            _("its import brings other names of apex, too"): any(len(each.names) > 1 for each in imports),
        }
        _stays_if(reasons)
        self._choose_optimizer()
        started = [self._started(call) for call in self.starts]
        has_optimizers = any(has_optimizer for _start, has_optimizer in started)
        _stays_if({_("another file calls amp.scale_loss"): not self.scaled and has_optimizers})
        for each in imports:
            edits = [move_names(index, each, {"amp": "torch.npu.amp"})]
            yield found(self.context, self.rule, each, api=_AMP, edits=edits, needs_npu=False)
        if self.optimizer:
            yield self._first_scaler()
        yield from (start for start, _has_optimizer in started)
        yield from map(self._scaled, self.scaled)
        yield from self._steps() if self.optimizer else ()
        for call in self.parameters:
            text = f'[p for group in {self.optimizer}.param_groups for p in group["params"]]'
            yield self._found(call, "master_params", instead_of(index, call, text))
        for call in self.states:
            name = called_name(call)
            yield self._found(call, name, instead_of(index, call.func, f"{_SCALER}.{name}"))

    def _choose_optimizer(self) -> None:
        calls = [_scaling(each) for each in self.scaled]
        more = any(len(call.args) != 2 or call.keywords for call in calls)
        _stays_if({_("amp.scale_loss is given more than a loss and an optimizer"): more})
        given = [*(call.args[1] for call in calls), *(call.args[0] for call in self.parameters)]
        written = {*map(ast.unparse, given)}
        reasons = {
            _("it scales for several optimizers"): len(written) > 1 or any("[" in each for each in written),
            _("another file calls amp.scale_loss"): not calls and (self.parameters or self.states),
        }
        _stays_if(reasons)
        self.optimizer = next(iter(written), "")

    def _started(self, call: ast.Call) -> tuple[Match, bool]:
        """What becomes of a statement with amp.initialize, and whether that is given an optimizer."""
        index = self.index
        statement, torch = index.parent(call), self._torch()
        given = {keyword.arg or "": keyword.value for keyword in call.keywords}
        is_plain = not hands_on(call) and len(call.args) in (1, 2)
        if not isinstance(statement, (ast.Assign, ast.Expr)) or not is_plain:
            raise _StaysError(_("amp.initialize is called in another way"))
        for name in sorted(given.keys() - _DROPPED - {"opt_level", "enabled"}):
            raise _StaysError(_("amp.initialize is given {name}", name=name))
        level = given.get("opt_level")
        _stays_if({_('"O3" computes all in float16: write model.half()'): string_value(level) == "O3"})
        conditions = [index.segment(given["enabled"])] if "enabled" in given else []
        if level is not None and string_value(level) is None:
            conditions.append(f'{index.segment(level)} != "O0"')
        elif string_value(level) == "O0":
            conditions.append("False")
        # The condition as source, empty for always.
        enabled = " and ".join(conditions if len(conditions) < 2 else [f"({each})" for each in conditions])
        lines = []
        if self.optimizer:
            amp = index.segment(call.func).removesuffix(".initialize")
            is_inside = index.function_of(statement) is not None
            lines += [f"global {_SCALER}"] if is_inside else []
            lines.append(f"{_SCALER} = {amp}.GradScaler({f'enabled={enabled}' if enabled else ''})")
            enabled = f"{_SCALER}.is_enabled()" if enabled else ""
        lines.append(f'{torch}.set_autocast_enabled("npu", {enabled or "True"})')
        lines.append(f"{torch}.set_autocast_cache_enabled(False)")
        lines += self._kept(statement, call)
        text = statement_separator(index, statement).join(lines)
        optimizer = call.args[1] if len(call.args) == 2 else None
        has_optimizer = not (optimizer is None or is_none(optimizer) or ast.unparse(optimizer) == "[]")
        return self._found(statement, "initialize", instead_of(index, statement, text)), has_optimizer

    def _kept(self, statement: ast.stmt, call: ast.Call) -> list[str]:
        """The assignment without the call; nothing where it gives names what they have."""
        if not isinstance(statement, ast.Assign):
            return []
        target = statement.targets[0]
        is_whole = not isinstance(target, ast.Tuple) and len(call.args) == 2
        reasons = {
            _("amp.initialize is assigned to several targets"): len(statement.targets) != 1,
            _("the result of amp.initialize is not unpacked"): is_whole,
        }
        _stays_if(reasons)
        targets = [ast.unparse(each).strip("[]()") for each in getattr(target, "elts", [target])]
        if targets == [ast.unparse(each).strip("[]()") for each in call.args]:
            return []
        return [f"{self.index.segment(target)} = {', '.join(map(self.index.segment, call.args))}"]

    def _first_scaler(self) -> Match:
        """The scaler that does nothing until amp.initialize is reached, behind the imports of the module."""
        index, body = self.index, self.index.tree.body
        place = max((number for number, each in enumerate(body) if _imports(each)), default=-1)
        ends = [number for number, each in enumerate(body) if isinstance(each, _DEFINITIONS)]
        place = max((n for n in range(min([place + 1, *ends])) if _imports(body[n])), default=-1)
        _stays_if({_("the file does nothing but import"): place + 1 == len(body)})
        following = body[place + 1]
        decorators = getattr(following, "decorator_list", [])
        start = index.start(decorators[0]) - 1 if decorators else index.start(following)
        gap = newline_of(index.text) * (3 if isinstance(following, _DEFINITIONS) else 1)
        edit = Edit(start, start, f"{_SCALER} = {self._torch()}.npu.amp.GradScaler(enabled=False){gap}")
        api = f"{_AMP}.initialize"
        return insertion(self.context, self.rule, following, edit, api=api, safety="unsafe")

    def _torch(self) -> str:
        """The name under which all of a module knows torch."""
        for name, bound in self.index.module_scope.bindings.items():
            if {(each.kind, each.name) for each in bound} == {("import", "torch")}:
                if any(isinstance(self.index.parent(each.node), ast.Module) for each in bound):
                    return name
        raise _StaysError(_("torch is not imported at the top of the file"))

    def _scaled(self, node: ast.With) -> Match:
        """``with amp.scale_loss(loss, optimizer) as scaled:`` and what its body does with the scaled loss."""
        index, call = self.index, _scaling(node)
        name, loss = node.items[0].optional_vars, call.args[0]
        if not isinstance(name, ast.Name) or len(node.items) != 1:
            raise _StaysError(_("amp.scale_loss is used in another way"))
        for statement in node.body:
            index.expand(statement)
        inside = [part for part in ast.walk(node) if isinstance(part, ast.Name) and part.id == name.id]
        uses = [part for part in inside if isinstance(part.ctx, ast.Load) and part not in [*ast.walk(call)]]
        is_once = isinstance(loss, _SIMPLE) or len(uses) == 1
        # Several blocks may give it the same name.
        others = (use for use in index.uses_of(name) if use not in inside)
        blocks = ([each for each in index.above(use) if isinstance(each, ast.With)] for use in others)
        bound = all(name.id in [last_name(each.items[0].optional_vars) for each in above] for above in blocks)
        reasons = {
            _("the scaled loss is used in another way"): not uses or not is_once,
            _("the scaled loss is used behind its block"): name.id != ast.unparse(loss) and not bound,
        }
        _stays_if(reasons)
        edits = [instead_of(index, use, f"{_SCALER}.scale({index.segment(loss)})") for use in uses]
        autocast = f'{self._torch()}.autocast("npu", enabled=False)'
        return self._found(node, "scale_loss", Edit(index.start(call), index.end(name), autocast), *edits)

    def _steps(self) -> Iterator[Match]:
        """The optimizer's steps, and what unscales its gradients before a program looks at them."""
        index = self.index
        steps = [
            statement
            for call in index.calls
            if called_name(call) == "step" and not arguments_of(call)
            if isinstance(statement := index.parent(call), ast.Expr)
            and ast.unparse(holder_of(call) or call) == self.optimizer
        ]
        functions = {index.function_of(each) for each in self.scaled}
        beside = [step for step in steps if index.function_of(step) in functions]
        looks = self.parameters or _GRADIENTS.search(index.text)
        elsewhere = not steps or (beside and {index.function_of(step) for step in beside} != functions)
        apart = _("the optimizer's step is in another function than what its gradients are used for")
        _stays_if({_("the optimizer's step is elsewhere"): elsewhere, apart: looks and not beside})
        # Every loss of the functions is scaled, or another one is where amp is on.
        for call in index.calls:
            if called_name(call) == "backward" and index.function_of(call) in functions:
                around = [*index.above(call)]
                scaled = any(each in around or in_other_branch(index, call, each) for each in self.scaled)
                _stays_if({_("a loss is used without amp.scale_loss, too"): not scaled})
        for step in beside or steps:
            separator = statement_separator(index, step)
            text = f"{_SCALER}.step({self.optimizer}){separator}{_SCALER}.update()"
            yield self._found(step, "scale_loss", instead_of(index, step, text))
        regions = [self._unscaled(step) for step in beside] if looks else []
        for function in functions if looks else ():
            yield from self._gradients(function, regions)
        for region in regions:
            if region.is_used:
                edit = region.edit(index, f"{_SCALER}.unscale_({self.optimizer})")
                yield self._found(region.statement, "scale_loss", edit)

    def _unscaled(self, step: ast.Expr) -> _Unscaled:
        """Behind what scales, or first in the step's block, where that runs less often."""
        index, block, end = self.index, self.index.block(step), self.index.start(step)
        for around in (step, *index.above(step)):
            if isinstance(around, (*FUNCTIONS, ast.Module)):
                break
            before = [*index.before(around)]
            near = [each for each in self.scaled if is_inside(index, each, before)]
            if near and around is not step:
                return _Unscaled(block[0], False, index.start(block[0]), end)
            if near:
                place, *others = {_repeated(index, each, before) for each in near}
                _stays_if({_("several losses are scaled for one step"): others})
                return _Unscaled(place, True, index.end(place), end)
        raise _StaysError(_("the optimizer's step does not follow amp.scale_loss"))

    def _gradients(self, function: Optional[ast.AST], regions: list[_Unscaled]) -> Iterator[Match]:
        """Gradients are looked at where they are unscaled, or clipped to a norm scaled as they are."""
        index = self.index
        own = [each for each in self.scaled if index.function_of(each) is function]
        first, last = min(map(index.start, own)), max(region.end for region in regions)
        start, stop = index.span(function) if function is not None else (0, len(index.data))
        text = index.data[start:stop].decode("utf-8")
        asked = [index.start(call) for call in self.parameters]
        named = [start + len(text[: each.start()].encode("utf-8")) for each in _GRADIENTS.finditer(text)]
        for place in [*named, *asked]:
            inside = [region for region in regions if region.start <= place < region.end]
            for region in inside:
                region.is_used = True
            if inside or not (start <= place < stop and first < place < last):
                continue
            clips = (each for each in index.calls if called_name(each) == "clip_grad_norm_")
            clip = next((each for each in clips if index.start(each) <= place < index.end(each)), None)
            norm = argument_of(clip, "max_norm", 1) if clip is not None else None
            is_norm = isinstance(norm, (*_SIMPLE, ast.Constant))
            if clip is None or not is_norm or not isinstance(index.parent(clip), ast.Expr):
                raise _StaysError(_("gradients are used where GradScaler has not unscaled them"))
            # Of master_params the call itself stands in another place of the list.
            if norm and place not in asked and not all(in_other_branch(index, clip, each) for each in own):
                edit = Edit(index.end(norm), index.end(norm), f" * {_SCALER}.get_scale()")
                yield self._found(norm, "scale_loss", edit)


def _scaling(node: ast.With) -> ast.Call:
    call = node.items[0].context_expr
    assert isinstance(call, ast.Call)
    return call


def _imports(node: ast.stmt) -> bool:
    """Whether a statement of a module imports, perhaps only where something is there."""
    inside = [node, *getattr(node, "body", [])] if isinstance(node, (ast.Try, ast.If)) else [node]
    return any(isinstance(each, (ast.Import, ast.ImportFrom)) for each in inside)


@dataclass
class _Unscaled:
    """Where gradients are unscaled: ``behind`` a statement or before it, until the step at ``end``."""

    statement: ast.stmt
    behind: bool
    start: int
    end: int
    is_used: bool = False

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
