"""Collectives before the rank has chosen its NPU: all ranks of a machine meet on NPU 0, and then hang."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from migrator.findings.finding import Edit
from migrator.matchers.context import FileContext, Match, found
from migrator.matchers.npu_import import statement_separator
from migrator.matchers.packs import Options, Rule
from migrator.names.index import ModuleIndex
from migrator.names.outline import Scope
from migrator.names.tree import Statement, argument_of, bare_name, last_name, string_value, walk
from migrator.project.offers import CHOOSES, WAITER, WAITS

_JOIN = "init_process_group"
_RANK = "LOCAL_RANK"
_DEVICES = ("cuda", "nccl", "npu", "hccl")


class DeviceOptions(Options):
    """``choosing``: the calls that choose the device. ``decided``: arguments that name it or a group."""

    choosing: tuple[str, ...] = ()
    decided: tuple[str, ...] = ()


def find(context: FileContext, rule: Rule[DeviceOptions]) -> Iterator[Match]:
    """The first collective behind ``init_process_group`` in a function that has not chosen a device."""
    index = context.index
    calls = [(call, index.qualified_name(call.func)) for call in index.calls]
    choosing = tuple(f".{name}" for name in rule.options.choosing)
    chosen = [call for call, name in calls if f".{name}".endswith(choosing)]
    seen: set[Scope] = set()
    for join, name in calls:
        scope = index.scope_of(join)
        if not name.startswith("torch.distributed.") or not name.endswith(_JOIN) or scope in seen:
            continue
        seen.add(scope)
        mine = [call for call in chosen if index.scope_of(call) is scope]
        behind = [call for call, other in calls if rule.fits(other)]
        behind = [*behind, *_called(index, behind, chosen), *_called_elsewhere(context, scope)]
        behind = [call for call in behind if index.scope_of(call) is scope and _is_before(join, call)]
        if _decides(join, rule) or _over_gloo(join):
            continue
        if not behind:
            if not chosen and _waits_elsewhere(context):  # the first barrier may come before any collective
                yield found(context, rule, join, api=name, edits=_chosen_by_number(index, scope, join))
            continue
        first = min(behind, key=index.start)
        if _decides(first, rule) or any(_is_before(call, first) for call in mine):
            continue
        later = next((call for call in mine if _same_block(index, first, call)), None)
        edits = _moved(index, first, later) if later else _chosen_here(index, scope, first)
        if not edits and not chosen:
            edits = _chosen_by_number(index, scope, join)
        yield found(
            context,
            rule,
            first,
            span=(index.start(first), index.end(later)) if later and edits else None,
            api=index.qualified_name(first.func) or last_name(first.func),
            edits=edits,
            severity="info" if chosen and not mine and not edits else "",  # whoever calls it may have chosen
            needs_npu=not later,
        )


def _waits_elsewhere(context: FileContext) -> bool:
    """Whether the program is for devices, waits for all ranks somewhere, and chooses no device anywhere."""
    offers = context.project.offers
    asks = bool(offers.of(WAITS)) and not offers.of(CHOOSES)
    return asks and any(each in context.index.text for each in _DEVICES)


def _called(index: ModuleIndex, collectives: list[ast.Call], chosen: list[ast.Call]) -> Iterator[ast.Call]:
    """The calls of a file's functions that call a collective, and choose no device."""
    choosing = {index.function_of(call) for call in chosen}
    for function in {index.function_of(call) for call in collectives} - choosing:
        if function is not None:
            yield from filter(None, map(index.call_of, index.uses_of(function)))


def _called_elsewhere(context: FileContext, scope: Scope) -> Iterator[ast.Call]:
    """The calls in a function of such functions of other files."""
    waiters = [each.name.split(".") for each in context.project.offers.of(WAITER)]
    for call in (each for statement in scope.statements if waiters for each in walk(statement)):
        if isinstance(call, ast.Call):
            *places, name = context.index.qualified_name(call.func).split(".")
            if any(name == each[-1] and _leads(places, each) for each in waiters):
                yield call


def _leads(places: list[str], module: list[str]) -> bool:
    """Whether the packages that a name goes through lead to a module; it may be offered above it."""
    way, written = iter(module), [place for place in places if place]
    return bool(written) and all(place in way for place in written)


def _is_before(one: ast.Call, other: ast.Call) -> bool:
    return (one.lineno, one.col_offset) < (other.lineno, other.col_offset)


def _decides(call: ast.Call, rule: Rule[DeviceOptions]) -> bool:
    return any(word.arg in rule.options.decided for word in call.keywords)


def _over_gloo(join: ast.Call) -> bool:
    return string_value(argument_of(join, "backend", 0)) in ("gloo", "mpi")


def _same_block(index: ModuleIndex, first: ast.Call, later: ast.Call) -> bool:
    """Whether a later call is a statement by itself in the block that holds the first one's statement."""
    one, other = index.statement_of(first), index.statement_of(later)
    alone = isinstance(other, ast.Expr) and other.value is later
    return alone and any(other is each for each in index.block(one)) and _own_lines(index, one, other)


def _own_lines(index: ModuleIndex, *statements: Statement) -> bool:
    around = (index.lines.beside(index.span(statement)) for statement in statements)
    return all(not before.strip() and (behind.strip() or b"#").startswith(b"#") for before, behind in around)


def _moved(index: ModuleIndex, first: ast.Call, later: ast.Call) -> list[Edit]:
    """The later statement before the first one, where its names mean the same there."""
    one, other = index.statement_of(first), index.statement_of(later)
    block = list(index.block(one))
    between = block[block.index(one) : block.index(other)]  # type: ignore[arg-type]  # they are in it
    nodes = (node for statement in between for node in walk(statement))
    stored = {bare_name(node) for node in nodes if isinstance(getattr(node, "ctx", None), ast.Store)}
    if stored & ({bare_name(node) for node in walk(later)} - {""}):
        return []
    start, end = index.line_span(other.lineno, other.end_lineno or other.lineno)  # type: ignore[union-attr]
    return [_before(index, one, index.segment(other)), Edit(start, end, "")]


def _chosen_here(index: ModuleIndex, scope: Scope, first: ast.Call) -> list[Edit]:
    """``set_device`` before the first collective, where the local rank has a name there."""
    one = index.statement_of(first)
    if not _own_lines(index, one) or not _binds_torch(scope):
        return []
    for statement in scope.statements:
        if isinstance(statement, ast.Assign) and statement.lineno < first.lineno:
            target = statement.targets[0]
            has_rank = any(string_value(node) == _RANK for node in walk(statement.value))
            if isinstance(target, ast.Name) and has_rank and len(scope.bindings[target.id]) == 1:
                return [_before(index, one, f"torch.npu.set_device({target.id})")]
    return []


def _chosen_by_number(index: ModuleIndex, scope: Scope, join: ast.Call) -> list[Edit]:
    """``set_device`` behind ``init_process_group``: what NCCL does for a rank that has chosen no GPU."""
    statement, joins = index.statement_of(join), join.func
    if getattr(statement, "value", None) is not join or not isinstance(statement, ast.Expr):
        return []
    if not isinstance(joins, ast.Attribute) or not _own_lines(index, statement):
        return []
    new, group = statement_separator(index, statement), index.segment(joins.value)
    npu = "torch.npu" if _binds_torch(scope) else "torch_npu.npu"
    text = f"{npu}.set_device({group}.get_rank() % {npu}.device_count())"
    end = index.lines.content_end(index.lines.line_of(index.end(statement)))
    return [Edit(end, end, f"{new}if {npu}.is_available():{new}    {text}")]


def _binds_torch(scope: Scope) -> bool:
    return any(binding.name == "torch" for binding in scope.look_up("torch"))


def _before(index: ModuleIndex, statement: Any, text: str) -> Edit:
    at = index.start(statement)
    return Edit(at, at, text + statement_separator(index, statement))
