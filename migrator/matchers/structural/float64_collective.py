"""HCCL refuses float64 in reducing collectives."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from migrator.findings.finding import Edit
from migrator.language import _
from migrator.matchers.context import FileContext, Match, found
from migrator.matchers.packs import Options, Rule
from migrator.names.flow import Parameter, Source, made_with, reduced, sources
from migrator.names.index import ModuleIndex, identifiers
from migrator.names.placement import made_on_the_cpu
from migrator.names.tree import argument_of, bare_name, parameters
from migrator.project.program import is_reducing


@dataclass(frozen=True)
class CollectiveOptions(Options):
    """``dtypes``: those that are refused; ``arrays``: functions of numpy that give such an array unasked."""

    dtypes: tuple[str, ...] = ()
    arrays: tuple[str, ...] = ()


def find(context: FileContext, rule: Rule[CollectiveOptions]) -> Iterator[Match]:
    """Report where the tensor of a reducing collective is made with float64."""
    found_here, _ = reduced(context.index, lambda name: rule.fits(name))
    on_npu = (item for item in found_here if not _is_on_the_cpu(context, rule, item.value))
    yield from _makers(context, rule, ((item.value, item.api) for item in on_npu))


def _is_on_the_cpu(context: FileContext, rule: Rule[CollectiveOptions], value: ast.expr) -> bool:
    """Whether a collective is given a tensor that stays on the CPU, which gloo reduces."""
    index = context.index
    call = index.parent(value)
    if isinstance(call, ast.keyword):
        call = index.parent(call)
    given = isinstance(call, ast.Call) and rule.fits(index.qualified_name(call.func))
    return given and not context.project.program.cuda_default and made_on_the_cpu(index, value)


def find_handed_over(context: FileContext, rule: Rule[CollectiveOptions]) -> Iterator[Match]:
    """The same through a function of another file: one that reduces its argument, or gives float64."""
    index = context.index
    known = [each.split(":") for each in sorted(context.project.program.reducers)]
    given: list[tuple[ast.expr, str]] = []
    for call in index.calls:
        name = index.qualified_name(call.func)
        if "." not in name or name.startswith("torch."):
            continue
        for function, place, parameter in known:
            if function == name.rpartition(".")[2]:
                value = argument_of(call, parameter, int(place))
                given += [(value, name)] if value is not None else []
    yield from _makers(context, rule, given)
    doubles = context.project.program.doubles
    here = [(item.value, item.api) for item in reduced(index, is_reducing)[0]]
    seen: set[int] = set()
    for value, api in (*given, *here):
        for source in sources(index, value):
            if isinstance(source, ast.Attribute) and id(source) not in seen:
                seen.add(id(source))
                yield from _of_keeper(context, rule, source, api)
            name = index.qualified_name(source.func) if isinstance(source, ast.Call) else ""
            if "." in name and name.rpartition(".")[2] in doubles and id(source) not in seen:
                seen.add(id(source))
                message = _(
                    "{name}() returns float64, which HCCL does not reduce in {api}()", name=name, api=api
                )
                advice = _("Write .float() after the call, or reduce over gloo on the CPU.")
                yield found(context, rule, source, api=name, message=message, advice=advice)  # type: ignore[arg-type]


def _of_keeper(context: FileContext, rule: Rule, source: ast.Attribute, api: str) -> Iterator[Match]:
    """An attribute of another object, where a class of the project keeps float64 in one of that name."""
    kept = (each.split(".") for each in sorted(context.project.program.double_attributes))
    owner = next((owner for owner, name in kept if name == source.attr), "")
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
    reported: set[int] = set()
    for value, api in given:
        for source in sources(context.index, value):
            maker = made_with(context.index, source, rule.options.dtypes)
            if maker is not None and id(maker) not in reported:
                reported.add(id(maker))
                yield _report(context, rule, maker, api)
            elif isinstance(source, ast.Call) and source.args and id(source) not in reported:
                if context.index.qualified_name(source.func) in _OF_ARRAYS and not _has_dtype(source):
                    reported.add(id(source))
                    yield from _of_numbers(context, rule, source, api)


def _of_numbers(
    context: FileContext, rule: Rule[CollectiveOptions], call: ast.Call, api: str
) -> Iterator[Match]:
    """A tensor of an array that has float64 because nobody named another dtype, or of what others hand in."""
    index, held = context.index, call.args[0]
    origins = list(sources(index, held))
    made = [each for each in origins if isinstance(each, ast.Call) and not _has_dtype(each)]
    if any(index.qualified_name(each.func) in rule.options.arrays for each in made):
        end = index.end(call)
        edits = [Edit(end, end, ".float()")]
        yield found(context, rule, call, api=api, edits=edits)
    elif isinstance(held, ast.Name) and _is_handed_in(index, held, origins):
        about = {"name": held.id, "api": api}
        message = _(
            "where {name} is a NumPy value the tensor is float64, which HCCL does not reduce in {api}()",
            **about,
        )
        advice = _(
            "Give the dtype (dtype=torch.float32), or pass float({name}) if it is one number.", **about
        )
        edits = _as_numbers(index, call, held)
        yield found(
            context, rule, call, api=api, message=message, advice=advice, severity="warning", edits=edits
        )


def _as_numbers(index: ModuleIndex, call: ast.Call, held: ast.Name) -> list[Edit]:
    """What has a NumPy value's method for it is given as Python's numbers, of which torch makes float32."""
    if index.qualified_name(call.func) == "torch.from_numpy":
        return []
    end, name = index.end(held), held.id
    return [Edit(end, end, f'.tolist() if hasattr({name}, "tolist") else {name}')]


def _is_handed_in(index: ModuleIndex, held: ast.Name, origins: list[Source]) -> bool:
    """Whether nothing but parameters says what a name holds, or what a comprehension loops over."""
    if any(isinstance(binding.node, (ast.DictComp, ast.ListComp)) for binding in index.bindings(held)):
        return True
    given = [source for source in origins if isinstance(source, Parameter)]
    noted = (parameters(source.function.args)[source.place].annotation for source in given)
    return bool(given) and len(given) == len(origins) and not any(bare_name(note) in _PLAIN for note in noted)


_PLAIN = ("int", "float", "bool")
_OF_ARRAYS = ("torch.from_numpy", "torch.tensor", "torch.as_tensor")


def _has_dtype(call: ast.Call) -> bool:
    return len(call.args) > 1 or any(keyword.arg in ("dtype", None) for keyword in call.keywords)


def _report(context: FileContext, rule: Rule, maker: ast.expr, name: str) -> Match:
    index = context.index
    end = index.end(maker)
    written = maker.attr if isinstance(maker, ast.Attribute) else ""
    if written == "DoubleTensor":
        new = "FloatTensor"
    else:
        new = "float" if index.call_of(maker) else "float32" if written in ("float64", "double") else ""
    edits = [Edit(end - len(written), end, new)] if new else _converted(index, maker)
    return found(context, rule, maker, api=name, edits=edits)


def _converted(index: ModuleIndex, dtype: ast.expr) -> list[Edit]:
    """The edit for a dtype that has another name, which others may need: what the call gives is converted."""
    holder = index.parent(dtype)
    call = index.parent(holder) if isinstance(holder, ast.keyword) else holder
    if not isinstance(call, ast.Call) or call.func is dtype:
        return []
    end = index.end(call)
    return [Edit(end, end, ".float()")]
