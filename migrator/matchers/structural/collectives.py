"""Collectives that hang or raise on NPUs: before the rank has chosen its NPU, and of float64."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from migrator.findings.finding import Edit
from migrator.language import N_, _
from migrator.matchers.context import FileContext, Match, Said, found
from migrator.matchers.npu_import import statement_separator
from migrator.matchers.packs import Options, Rule
from migrator.names.goes_to import taken_by
from migrator.names.index import ModuleIndex, identifiers
from migrator.names.made_from import made_from, made_with, parameter_of, reduced
from migrator.names.outline import Scope
from migrator.names.tree import Statement, argument_of, bare_name, last_name, parameters, string_value, walk
from migrator.project.facts import is_reducing
from migrator.project.offers import CHOOSES, DOUBLE, DOUBLE_ATTRIBUTE, REDUCER, WAITER, WAITS

_JOIN = "init_process_group"
_RANK = "LOCAL_RANK"
_DEVICES = ("cuda", "nccl", "npu", "hccl")


class DeviceOptions(Options):
    """``choosing``: the calls that choose the device. ``decided``: arguments that name it or a group."""

    choosing: tuple[str, ...] = ()
    decided: tuple[str, ...] = ()


def find_before_device(context: FileContext, rule: Rule[DeviceOptions]) -> Iterator[Match]:
    """The first collective behind ``init_process_group`` in a function that has not chosen a device."""
    index, offers = context.index, context.project.offers
    calls = [(call, index.qualified_name(call.func)) for call in index.calls]
    choosing = tuple(f".{name}" for name in rule.options.choosing)
    chosen = [call for call, name in calls if f".{name}".endswith(choosing)]
    # Of a tensor on the CPU gloo takes care, which needs no device.
    fitting = [call for call, name in calls if rule.fits(name)]
    collectives = [each for each in fitting if not context.is_on_cpu(*each.args[:1])]
    # The file's functions that call a collective, and choose no device.
    waiting = {*map(index.function_of, collectives)} - {None, *map(index.function_of, chosen)}
    uses = (use for function in waiting if function is not None for use in index.uses_of(function))
    collectives += filter(None, map(index.call_of, uses))
    # The program is for devices, waits for all ranks somewhere, and chooses no device anywhere.
    asks = not chosen and any(each in index.text for each in _DEVICES)
    waits = asks and bool(offers.of(WAITS)) and not offers.of(CHOOSES)
    seen: set[Scope] = set()

    def decides(call: ast.Call) -> bool:
        return any(word.arg in rule.options.decided for word in call.keywords)

    for join, name in calls:
        scope = index.scope_of(join)
        if not name.startswith("torch.distributed.") or not name.endswith(_JOIN) or scope in seen:
            continue
        seen.add(scope)
        backend = string_value(argument_of(join, "backend", 0))
        if decides(join) or (backend and not any(each in backend for each in _DEVICES)):
            continue
        mine = [call for call in chosen if index.scope_of(call) is scope]
        every = (*collectives, *_called_elsewhere(context, scope))
        start = index.start(join)
        behind = [call for call in every if index.scope_of(call) is scope and start < index.start(call)]
        if not behind:
            if waits:  # the first barrier may come before any collective
                yield found(context, rule, join, api=name, edits=_chosen_by_number(index, scope, join))
            continue
        first = min(behind, key=index.start)
        if decides(first) or any(index.start(call) < index.start(first) for call in mine):
            continue
        later = next((call for call in mine if _is_beside(index, first, call)), None)
        edits = _moved(index, first, later) if later else _chosen_here(index, scope, first)
        if not edits and not chosen:
            edits = _chosen_by_number(index, scope, join)
        about: Said = {"api": index.qualified_name(first.func) or last_name(first.func), "edits": edits}
        # Whoever calls it may have chosen.
        about["severity"] = "info" if chosen and not mine and not edits else ""
        span = (index.start(first), index.end(later)) if later and edits else None
        yield found(context, rule, first, span=span, needs_npu=not later, **about)


def _called_elsewhere(context: FileContext, scope: Scope) -> Iterator[ast.Call]:
    """The calls in a function of functions of other files that wait for all ranks.

    The packages that a name goes through lead to the module; it may be offered above it.
    """
    waiters = [each.name.split(".") for each in context.project.offers.of(WAITER)]
    for call in (each for statement in scope.statements if waiters for each in walk(statement)):
        if isinstance(call, ast.Call):
            *places, name = context.index.qualified_name(call.func).split(".")
            written = [place for place in places if place]
            for waiter in waiters if written else ():
                way = iter(waiter)
                if name == waiter[-1] and all(place in way for place in written):
                    yield call
                    break


def _is_beside(index: ModuleIndex, first: ast.Call, later: ast.Call) -> bool:
    """Whether a later call is a statement by itself in the block that holds the first one's statement."""
    one, other = index.statement_of(first), index.statement_of(later)
    alone = isinstance(other, ast.Expr) and other.value is later
    return alone and index.block(one) is index.block(other) and _own_lines(index, one, other)


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
    at, moved = index.start(one), index.segment(other) + statement_separator(index, one)  # type: ignore[arg-type]
    return [Edit(at, at, moved), Edit(start, end, "")]


def _chosen_here(index: ModuleIndex, scope: Scope, first: ast.Call) -> list[Edit]:
    """``set_device`` before the first collective, where the local rank has a name there."""
    one = index.statement_of(first)
    for statement in scope.statements if _own_lines(index, one) and _names_torch(scope) else ():
        if isinstance(statement, ast.Assign) and statement.lineno < first.lineno:
            target = statement.targets[0]
            has_rank = any(string_value(node) == _RANK for node in walk(statement.value))
            if isinstance(target, ast.Name) and has_rank and len(scope.bindings[target.id]) == 1:
                at, separator = index.start(one), statement_separator(index, one)  # type: ignore[arg-type]
                return [Edit(at, at, f"torch.npu.set_device({target.id}){separator}")]
    return []


def _chosen_by_number(index: ModuleIndex, scope: Scope, join: ast.Call) -> list[Edit]:
    """``set_device`` behind ``init_process_group``: what NCCL does for a rank that has chosen no GPU."""
    statement, joins = index.statement_of(join), join.func
    if not isinstance(statement, ast.Expr) or statement.value is not join:
        return []
    if not isinstance(joins, ast.Attribute) or not _own_lines(index, statement):
        return []
    new, group = statement_separator(index, statement), index.segment(joins.value)
    npu = "torch.npu" if _names_torch(scope) else "torch_npu.npu"
    text = f"{npu}.set_device({group}.get_rank() % {npu}.device_count())"
    end = index.lines.content_end(index.lines.line_of(index.end(statement)))
    return [Edit(end, end, f"{new}if {npu}.is_available():{new}    {text}")]


def _names_torch(scope: Scope) -> bool:
    return any(binding.name == "torch" for binding in scope.look_up("torch"))


class CollectiveOptions(Options):
    """``dtypes``: those that are refused; ``arrays``: functions of numpy that give such an array unasked."""

    dtypes: tuple[str, ...] = ()
    arrays: tuple[str, ...] = ()


_PLAIN = ("int", "float", "bool")
_OF_ARRAYS = ("torch.from_numpy", "torch.tensor", "torch.as_tensor")
_AS_FLOAT32 = {"DoubleTensor": "FloatTensor", "float64": "float32", "double": "float32"}


def find_float64(context: FileContext, rule: Rule[CollectiveOptions]) -> Iterator[Match]:
    """Report where the tensor of a reducing collective is made with float64.

    One that stays on the CPU is reduced by gloo, unless a CUDA type is the default.
    """
    index, given = context.index, list[tuple[ast.expr, str]]()
    for value, api in reduced(index, rule.fits)[0]:
        call = taken_by(index, value).holder
        is_given = isinstance(call, ast.Call) and rule.fits(index.qualified_name(call.func))
        if not (is_given and context.is_on_cpu(value)):
            given.append((value, api))
    yield from _makers(context, rule, given)


def find_handed_over(context: FileContext, rule: Rule[CollectiveOptions]) -> Iterator[Match]:
    """The same through a function of another file: one that reduces its argument, or gives float64."""
    index, offers = context.index, context.project.offers
    given: list[tuple[ast.expr, str]] = []
    for call in index.calls:
        name = index.qualified_name(call.func)
        for reducer in offers.of(REDUCER) if "." in name and not name.startswith("torch.") else ():
            if reducer.name == name.rpartition(".")[2]:
                value = argument_of(call, "".join(reducer.detail), reducer.place)
                given += [(value, name)] if value is not None else []
    yield from _makers(context, rule, given)
    # Of what is made in several ways each is reported once, for the first collective.
    every = reversed([*given, *reduced(index, is_reducing)[0]])
    sources = {source: api for value, api in every for source in made_from(index, value, inside=True)}
    for source, api in sources.items():
        name = index.qualified_name(source.func) if isinstance(source, ast.Call) else ""
        if isinstance(source, ast.Attribute):
            yield from _of_keeper(context, rule, source, api)
        elif "." in name and name.rpartition(".")[2] in offers.names(DOUBLE):
            message = _("{name}() returns float64, which HCCL cannot reduce in {api}()", name=name, api=api)
            advice = _("Write .float() after the call, or reduce over gloo on the CPU.")
            yield found(context, rule, source, api=name, message=message, advice=advice)


def _of_keeper(context: FileContext, rule: Rule, source: ast.Attribute, api: str) -> Iterator[Match]:
    """An attribute of another object, where a class of the project keeps float64 in one of that name."""
    kept = context.project.offers.of(DOUBLE_ATTRIBUTE)
    owner = next((owner for each in kept if each.name == source.attr for owner in each.detail), "")
    if owner and bare_name(source.value) != "self":
        named = owner in identifiers(context.index.text)
        where = "" if named else _(", if the object is of such a type")
        about = {"owner": owner, "where": where, "api": api}
        message = _("{owner} stores float64 in it{where}, which HCCL cannot reduce in {api}()", **about)
        yield found(context, rule, source, api=api, message=message, severity="" if named else "warning")


def _makers(
    context: FileContext, rule: Rule[CollectiveOptions], given: Iterable[tuple[ast.expr, str]]
) -> Iterator[Match]:
    """What makes some values with float64, each once."""
    index, reported = context.index, set[ast.expr]()
    for value, api in given:
        for source in made_from(index, value, inside=True):
            maker = made_with(index, source, rule.options.dtypes)
            call = source if isinstance(source, ast.Call) and source.args else None
            of_array = call and not _has_dtype(call) and index.qualified_name(call.func) in _OF_ARRAYS
            if maker is not None and maker not in reported:
                reported.add(maker)
                yield found(context, rule, maker, api=api, edits=_as_float32(index, maker))
            elif call and of_array and call not in reported:
                reported.add(call)
                yield from _of_numbers(context, rule, call, api)


def _as_float32(index: ModuleIndex, maker: ast.expr) -> list[Edit]:
    """The edit for what makes float64; where others may need its name, what the call gives is converted."""
    end, written = index.end(maker), maker.attr if isinstance(maker, ast.Attribute) else ""
    new = _AS_FLOAT32.get(written, "")
    if written not in ("", "DoubleTensor") and index.call_of(maker):
        new = "float"
    if new:
        return [Edit(end - len(written), end, new)]
    sink = taken_by(index, maker)
    end = index.end(sink.holder) if sink.kind == "argument" else 0
    return [Edit(end, end, ".float()")] if end else []


def _of_numbers(
    context: FileContext, rule: Rule[CollectiveOptions], call: ast.Call, api: str
) -> Iterator[Match]:
    """A tensor of an array that has float64 because nobody named another dtype, or of what others hand in."""
    index, held = context.index, call.args[0]
    origins = [*made_from(index, held, inside=True)]
    made = (each for each in origins if isinstance(each, ast.Call) and not _has_dtype(each))
    if any(index.qualified_name(each.func) in rule.options.arrays for each in made):
        end = index.end(call)
        yield found(context, rule, call, api=api, edits=[Edit(end, end, ".float()")])
    elif isinstance(held, ast.Name) and _is_handed_in(index, held, origins):
        end, about = index.end(held), {"name": held.id, "api": api}
        message = N_("if {name} is a NumPy value, the tensor is float64, which HCCL cannot reduce in {api}()")
        advice = N_("Pass the dtype (dtype=torch.float32), or pass float({name}) if it is a single number.")
        # What has a NumPy value's method for it is given as numbers, of which torch makes float32.
        edits = [Edit(end, end, f'.tolist() if hasattr({held.id}, "tolist") else {held.id}')]
        edits = edits if index.qualified_name(call.func) != "torch.from_numpy" else []
        said: Said = {"api": api, "edits": edits, "severity": "warning"}
        said["message"], said["advice"] = _(message, **about), _(advice, **about)
        yield found(context, rule, call, **said)


def _is_handed_in(index: ModuleIndex, held: ast.Name, origins: list[ast.expr]) -> bool:
    """Whether nothing but parameters says what a name holds, or what a comprehension loops over."""
    if any(isinstance(binding.node, (ast.DictComp, ast.ListComp)) for binding in index.bindings(held)):
        return True
    given = [*filter(None, (parameter_of(index, source) for source in origins))]
    noted = (parameters(source.function.args)[source.place].annotation for source in given)
    return bool(given) and len(given) == len(origins) and not any(bare_name(note) in _PLAIN for note in noted)


def _has_dtype(call: ast.Call) -> bool:
    return len(call.args) > 1 or any(keyword.arg in ("dtype", None) for keyword in call.keywords)
