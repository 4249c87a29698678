"""Every rank gets its share of the batches: DataLoaders by a DistributedSampler, other batches in turn."""

from __future__ import annotations

import ast

from migrator.convert.distributed.batches import Loader, carried, is_of, loader_calls
from migrator.convert.distributed.training import Training
from migrator.convert.draft import Draft, UncertainError
from migrator.convert.models import Wrapped
from migrator.convert.program import Program, dotted, parameters
from migrator.convert.write import added_parameter
from migrator.language import _
from migrator.names.tree import FUNCTIONS, arguments_of, called_name
from migrator.project.frameworks import entries, listed

_POSITIONS = ("dataset", "batch_size", "shuffle")
_READY = "dist.is_initialized()"
_PARAMETER = "over_ranks"
_NOT = object()


# -- loaders ---------------------------------------------------------------------------


def share_loader(draft: Draft, loader: Loader, found: list[Training]) -> None:
    """Plan the sampler. Raises UncertainError for a loader of which it is not plain how to share it."""
    program, call = draft.program, loader.call
    if any(isinstance(one, ast.Starred) for one in call.args) or len(call.args) > len(_POSITIONS):
        raise UncertainError("loader_arguments", call)
    words = [*_POSITIONS[: len(call.args)], *(keyword.arg or "**" for keyword in call.keywords)]
    places = dict(zip(words, enumerate(arguments_of(call))))
    given = ((name, value) for name, (_place, value) in places.items())
    values = {name: one for name, one in given if "sampler" not in name or _constant(one) is not None}
    data, sampler, value = (values.get(name) for name in ("dataset", "sampler", "shuffle"))
    more = _taken_from(program, call) if "**" in values else ""
    more = more if "shuffle" not in values else ""
    if data is None:
        raise UncertainError("dataset_not_plain", call)
    if "batch_sampler" in values:
        raise UncertainError("batch_sampler", call)
    made = {program.definition_of(origin) for origin in program.origins(data)}
    bases = [base for one in made if isinstance(one, ast.ClassDef) for base in one.bases]
    if any(dotted(base).split(".")[-1] == "IterableDataset" for base in bases):
        raise UncertainError("iterable_dataset", call)
    shuffle = _order(program, sampler, more, value, call)
    asked = _asked_for(draft, loader, call, found)
    # What can be written twice: a name, or a place in a named table.
    table = isinstance(data, ast.Subscript) and isinstance(data.slice, (ast.Constant, ast.Name))
    table = table and isinstance(data, ast.Subscript) and bool(dotted(data.value))
    text = program.segment(data) if table else dotted(data) or _named(draft, call, data)
    drop = [places[name][0] for name in ("shuffle", "sampler") if name in places]
    new = f"DistributedSampler({text}{shuffle})"
    further = program.file(call) is not program.entry
    ready = [_READY] if further and not more and not asked else []
    conditions = [one for one in (loader.only, asked, *ready) if one]
    if more:
        drop.append(places["**"][0])
        new = f"'sampler': {new}, 'shuffle': False"
        new = f"**({{{new}}} if {' and '.join(conditions)} else {{}})" if conditions else new
        add = [f"**{{**{more}, {new}}}"]
    else:
        otherwise = program.segment(sampler) if sampler is not None else "None"
        add = [f"sampler={new}" + (f" if {' and '.join(conditions)} else {otherwise}" if conditions else "")]
        if conditions and _constant(value) is not False:
            before = "" if _constant(value) is True or value is None else program.segment(value)
            before = before if dotted(value) or not before else f"({before})"
            together = " and ".join(conditions)
            otherwise = f"not ({together})" if len(conditions) > 1 else f"not {together}"
            if len(conditions) == 1 and " == " in together:
                otherwise = together.replace(" == ", " != ")
            add.append(f"shuffle={before}{' and ' if before else ''}{otherwise}")
    draft.change_arguments(call, drop, add)
    draft.changed(call, _("each rank trains on its share of the data"))


def _taken_from(program: Program, call: ast.Call) -> str:
    """What a call has behind ``**``: no sampler can be in it. Raises UncertainError where that is not known.

    Where shuffle is given, a sampler among the others would have been an error in the original, too.
    """
    (star, *others), file = [one.value for one in call.keywords if one.arg is None], program.file(call)
    text = program.segment(star)
    words = {node.value for node in program.nodes(ast.Constant, file=file) if isinstance(node.value, str)}
    making = (one for one in program.nodes(ast.Call, file=file) if called_name(one) in ("dict", "update"))
    words |= {str(keyword.arg) for one in making for keyword in one.keywords}
    plain = text.replace(".", "").replace("_", "").isalnum()
    if others or not plain or not words.isdisjoint(("sampler", "batch_sampler")):
        raise UncertainError("loader_double_star", call)
    return text


def _constant(node: ast.expr | None) -> object:
    """The value of a constant or of nothing (False); _NOT for what is no constant."""
    if node is None:
        return False
    return node.value if isinstance(node, ast.Constant) else _NOT


def _order(
    program: Program, sampler: ast.expr | None, more: str, shuffle: ast.expr | None, call: ast.Call
) -> str:
    """The shuffle argument of the new sampler, with a comma before it."""
    if sampler is not None:
        made = program.name(sampler) if isinstance(sampler, ast.Call) else ""
        kind = made.rpartition(".")[2]
        known = made.startswith("torch.utils.data.") and kind in ("RandomSampler", "SequentialSampler")
        if known and isinstance(sampler, ast.Call) and len(sampler.args) == 1 and not sampler.keywords:
            return "" if kind == "RandomSampler" else ", shuffle=False"
        raise UncertainError("own_sampler", call, name=kind or program.segment(sampler))
    if more:
        return f", shuffle={more}.get('shuffle', False)"
    value = _constant(shuffle)
    if value is _NOT and shuffle is not None:
        return f", shuffle={program.segment(shuffle)}"
    return "" if value else ", shuffle=False"


def _asked_for(draft: Draft, loader: Loader, call: ast.Call, found: list[Training], depth: int = 6) -> str:
    """The condition under which a call makes a training loader: a new parameter of the function around it.

    Empty where it makes no other. Raises UncertainError where the function cannot get a parameter.
    """
    program = draft.program
    function = program.scope_of(call)
    if not isinstance(function, FUNCTIONS) or not depth:
        return ""
    sites = program.live_sites(function)
    training = [site for site in sites if _leads_to(program, loader, site, found)]
    ways = [_asked_for(draft, loader, site, found, depth - 1) for site in training]
    scopes = [one for each in found for one in each.scopes]
    owner = program.class_of(function)
    on_the_way = function in scopes or (owner is not None and owner in map(program.class_of, scopes))
    if not training and (len(sites) < 2 or on_the_way):
        return ""
    if len(training) == len(sites) and not any(ways):
        return ""
    names = {*parameters(function), *(node.id for node in program.nodes(ast.Name, file=program.file(call)))}
    if not training or function.args.posonlyargs or _PARAMETER in names:
        raise UncertainError("loader_serves_others", call)
    draft.of(call).edits.append(added_parameter(program.file(call), function, f"{_PARAMETER}=False"))
    for site, way in zip(training, ways):
        draft.change_arguments(site, [], [f"{_PARAMETER}={way or True}"])
        draft.changed(site, _("queries the training loader"))
    return _PARAMETER


def _leads_to(program: Program, loader: Loader, site: ast.Call, found: list[Training]) -> bool:
    """Whether a loader comes to training by a call: without knowing what that calls, it is not found."""
    blind = program.but(found={**program.found, site.func: None})

    def is_found(where: Program, item: ast.expr, one: Training) -> bool:
        return any(loader.call is other.call for other in loader_calls(where, item, one.known))

    return any(
        is_found(program, item, one) and not is_found(blind, item, one)
        for one in found
        if any(loader.call is other.call for other in one.loaders)
        for item in one.items
    )


def _named(draft: Draft, call: ast.Call, data: ast.expr) -> str:
    """A name for a dataset that the call makes itself: the sampler needs it, too."""
    program = draft.program
    statement = program.statement_of(call)
    name = "train_dataset"
    compound = hasattr(statement, "body")
    if compound or not program.own_line(statement) or name in program.file(call).text:
        raise UncertainError("dataset_without_name", call)
    draft.insert("before", statement, [f"{name} = {program.segment(data)}"])
    draft.replace(data, name)
    return name


# -- batches that a program draws itself -----------------------------------------------------


def check_batches(program: Program, found: list[Training], models: list[Wrapped]) -> None:
    """Raises UncertainError where batches build on those before, or are not seen to go into a model."""
    for training in found:
        for model in models:
            calls = [node for node in model.calls if node in training.inside]
            node = carried(program, training.batches, calls)
            if node is not None:
                raise UncertainError("carried_state", node)
            made = [call for call in map(program.parent, calls) if isinstance(call, ast.Call)]
            given = [one for call in made for one in (*call.args, *call.keywords)]
            fed = any(one.held.holds(arg) for one in training.drawn for arg in given)
            if calls and training.drawn and not fed:
                raise UncertainError("batches_pass_by", training.batches, home=model.home)


def share_drawn(draft: Draft, found: list[Training]) -> None:
    """Plan it for the batches of the training loops, and for what asks for their number."""
    program = draft.program
    for training in found:
        for one in training.drawn:
            calls = [call for call in program.nodes(ast.Call) if not one.one and dotted(call.func) == "len"]
            counted = (call.args[0] for call in calls if call.args and is_of(program, one, call.args[0]))
            for node in (one.node, *counted):
                text = program.segment(node)
                code = f"own_turn(lambda: {text})" if one.one else f"ShareOfRank({text})"
                draft.replace(node, code, _("each rank trains on its share of the batches"))
        if training.drawn:
            draft.report("drawn_by_all", training.batches)
    if not any(training.drawn for training in found):
        return
    # The random numbers that the program uses without a seed.
    called = set(map(program.name, program.nodes(ast.Call)))
    used = {name for name in called if listed("random_numbers", name)}
    unseeded = [
        seed
        for seed in entries("seeds")
        if seed not in called and any(name.startswith(seed.rpartition(".")[0] + ".") for name in used)
    ]
    if unseeded:
        draft.of(program.entry.tree).imports += (f"import {seed.rpartition('.')[0]}" for seed in unseeded)
        draft.set_up.append(f"seed_alike({', '.join(unseeded)})")
