"""HCCL refuses float64 in reducing collectives."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import partial

from migrator.findings.finding import Edit
from migrator.language import _
from migrator.matchers.context import FileContext, Match, found
from migrator.matchers.packs import Options, Rule
from migrator.names.goes_to import taken_by
from migrator.names.index import ModuleIndex, identifiers
from migrator.names.made_from import made_from, made_with, parameter_of, reduced
from migrator.names.tree import argument_of, bare_name, parameters
from migrator.names.what_is import kept_on_the_cpu
from migrator.project.facts import is_reducing
from migrator.project.offers import CUDA_DEFAULT, DOUBLE, DOUBLE_ATTRIBUTE, REDUCER


class CollectiveOptions(Options):
    """``dtypes``: those that are refused; ``arrays``: functions of numpy that give such an array unasked."""

    dtypes: tuple[str, ...] = ()
    arrays: tuple[str, ...] = ()


_PLAIN = ("int", "float", "bool")
_OF_ARRAYS = ("torch.from_numpy", "torch.tensor", "torch.as_tensor")


def find(context: FileContext, rule: Rule[CollectiveOptions]) -> Iterator[Match]:
    """Report where the tensor of a reducing collective is made with float64."""
    found_here, _ = reduced(context.index, lambda name: rule.fits(name))
    on_npu = (item for item in found_here if not _is_on_the_cpu(context, rule, item.value))
    yield from _makers(context, rule, ((item.value, item.api) for item in on_npu))


def _is_on_the_cpu(context: FileContext, rule: Rule[CollectiveOptions], value: ast.expr) -> bool:
    """Whether a collective is given a tensor that stays on the CPU, which gloo reduces."""
    call = taken_by(context.index, value).holder
    given = isinstance(call, ast.Call) and rule.fits(context.index.qualified_name(call.func))
    on_npu = not given or context.project.offers.of(CUDA_DEFAULT)
    return not on_npu and kept_on_the_cpu(context.index, value, made=True)


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
    here = [(item.value, item.api) for item in reduced(index, is_reducing)[0]]
    # Of what is made in several ways each is reported once, for the first collective.
    sources = {source: api for value, api in reversed([*given, *here]) for source in _sources(index, value)}
    for source, api in sources.items():
        name = index.qualified_name(source.func) if isinstance(source, ast.Call) else ""
        if isinstance(source, ast.Attribute):
            yield from _of_keeper(context, rule, source, api)
        elif "." in name and name.rpartition(".")[2] in offers.names(DOUBLE):
            message = _("{name}() returns float64, which HCCL does not reduce in {api}()", name=name, api=api)
            advice = _("Write .float() after the call, or reduce over gloo on the CPU.")
            yield found(context, rule, source, api=name, message=message, advice=advice)


def _sources(index: ModuleIndex, value: ast.expr) -> Iterator[ast.expr]:
    return made_from(index, value, inside=True)


def _of_keeper(context: FileContext, rule: Rule, source: ast.Attribute, api: str) -> Iterator[Match]:
    """An attribute of another object, where a class of the project keeps float64 in one of that name."""
    kept = context.project.offers.of(DOUBLE_ATTRIBUTE)
    owner = next((owner for each in kept if each.name == source.attr for owner in each.detail), "")
    if owner and bare_name(source.value) != "self":
        named = owner in identifiers(context.index.text)
        where = "" if named else _(", if the object is one of these")
        about = {"owner": owner, "where": where, "api": api}
        message = _("{owner} stores float64 in it{where}, which HCCL does not reduce in {api}()", **about)
        yield found(context, rule, source, api=api, message=message, severity="" if named else "warning")


def _makers(
    context: FileContext, rule: Rule[CollectiveOptions], given: Iterable[tuple[ast.expr, str]]
) -> Iterator[Match]:
    """What makes some values with float64, each once."""
    index, reported = context.index, set[ast.expr]()
    for value, api in given:
        for source in _sources(index, value):
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
    end = index.end(maker)
    written = maker.attr if isinstance(maker, ast.Attribute) else ""
    new = {"DoubleTensor": "FloatTensor", "float64": "float32", "double": "float32"}.get(written, "")
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
    origins = [*_sources(index, held)]
    made = (each for each in origins if isinstance(each, ast.Call) and not _has_dtype(each))
    if any(index.qualified_name(each.func) in rule.options.arrays for each in made):
        end = index.end(call)
        yield found(context, rule, call, api=api, edits=[Edit(end, end, ".float()")])
    elif isinstance(held, ast.Name) and _is_handed_in(index, held, origins):
        name, end, edits = held.id, index.end(held), []
        message = _(
            "where {name} is a NumPy value the tensor is float64, which HCCL does not reduce in {api}()",
            name=name,
            api=api,
        )
        advice = _(
            "Give the dtype (dtype=torch.float32), or pass float({name}) if it is one number.", name=name
        )
        if index.qualified_name(call.func) != "torch.from_numpy":
            # What has a NumPy value's method for it is given as numbers, of which torch makes float32.
            edits = [Edit(end, end, f'.tolist() if hasattr({name}, "tolist") else {name}')]
        says = partial(found, message=message, advice=advice, severity="warning")
        yield says(context, rule, call, api=api, edits=edits)


def _is_handed_in(index: ModuleIndex, held: ast.Name, origins: list[ast.expr]) -> bool:
    """Whether nothing but parameters says what a name holds, or what a comprehension loops over."""
    if any(isinstance(binding.node, (ast.DictComp, ast.ListComp)) for binding in index.bindings(held)):
        return True
    given = [*filter(None, (parameter_of(index, source) for source in origins))]
    noted = (parameters(source.function.args)[source.place].annotation for source in given)
    return bool(given) and len(given) == len(origins) and not any(bare_name(note) in _PLAIN for note in noted)


def _has_dtype(call: ast.Call) -> bool:
    return len(call.args) > 1 or any(keyword.arg in ("dtype", None) for keyword in call.keywords)
