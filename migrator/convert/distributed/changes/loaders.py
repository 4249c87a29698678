"""Each training DataLoader gets a DistributedSampler: every rank its share of the batches."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import Any

from migrator.convert.distributed.find.iterables import Loader, loader_calls
from migrator.convert.distributed.find.training import Training
from migrator.convert.draft import DIST, Draft, UncertainError
from migrator.convert.program import File, Program
from migrator.convert.syntax import dotted, last_name, parameters
from migrator.convert.values import definition_of, live_sites, origins
from migrator.convert.write import added_parameter
from migrator.language import _

_POSITIONS = ("dataset", "batch_size", "shuffle", "sampler", "batch_sampler")
_IMPORT = "from torch.utils.data.distributed import DistributedSampler"
_READY = "dist.is_initialized()"
_PARAMETER = "over_ranks"


@dataclass(frozen=True, eq=False)
class _Given:
    """The arguments of a DataLoader call: by name, the places of what gives way, and the ``**`` ones."""

    values: dict[str, Any]
    places: dict[str, int]
    stars: list[str]


def share_loaders(program: Program, draft: Draft, found: list[Training]) -> None:
    """Plan the samplers. Raises UncertainError for a loader of which it is not plain how to share it."""
    seen: list[ast.Call] = []
    for training in found:
        for loader in training.loaders:
            if not any(loader.call is one for one in seen):
                seen.append(loader.call)
                _share(program, draft, loader, found)


def _share(program: Program, draft: Draft, loader: Loader, found: list[Training]) -> None:
    file, call = loader.file, loader.call
    given = _read(file, call)
    data = given.values.get("dataset")
    if data is None:
        raise UncertainError("dataset_not_plain", file, call)
    if "batch_sampler" in given.values:
        raise UncertainError("batch_sampler", file, call)
    if _iterable(program, file, data):
        raise UncertainError("iterable_dataset", file, call)
    sampler = given.values.get("sampler")
    shuffle = _shuffle(file, given, sampler, call)
    asked = _asked_for(program, draft, loader, file, call, found)
    text = _repeatable(file, data) or _named(draft, file, call, data)
    drop = [given.places[name] for name in ("shuffle", "sampler") if name in given.places]
    made = f"DistributedSampler({text}{shuffle})"
    ready = [_READY] if file is not program.entry and not given.stars and not asked else []
    conditions = [one for one in (loader.only, asked, *ready) if one]
    if given.stars:
        (star,) = given.stars
        drop.append(len(call.args) + [keyword.arg for keyword in call.keywords].index(None))
        new = f"{{'sampler': {made}, 'shuffle': False}}"
        new = f"({new} if {' and '.join(conditions)} else {{}})" if conditions else new
        add = [f"**{{**{star}, **{new}}}" if conditions else f"**{{**{star}, {new[1:-1]}}}"]
    else:
        otherwise = file.index.segment(sampler) if sampler is not None else "None"
        add = [f"sampler={made}" + (f" if {' and '.join(conditions)} else {otherwise}" if conditions else "")]
        value = given.values.get("shuffle")
        if conditions and _constant(value) is not False:
            before = "" if _constant(value) is True else f"{_condition(file, given)} and "
            add.append(f"shuffle={before}{_otherwise(conditions)}")
    draft.change_arguments(file, call, drop, add)
    draft.of(file).imports.append(_IMPORT)
    if ready:
        draft.of(file).imports.append(DIST)
    draft.changed(file, call, _("every rank trains on its share of the data"))


def _otherwise(conditions: list[str]) -> str:
    """The opposite of conditions that hold together."""
    if len(conditions) > 1:
        return f"not ({' and '.join(conditions)})"
    return conditions[0].replace(" == ", " != ") if " == " in conditions[0] else f"not {conditions[0]}"


def _repeatable(file: File, data: Any) -> str:
    """The text of a dataset that can be written twice: a name, or a place in a named table."""
    plain = isinstance(data, ast.Subscript) and isinstance(data.slice, (ast.Constant, ast.Name))
    return file.index.segment(data) if plain and dotted(data.value) else dotted(data)


def _read(file: File, call: ast.Call) -> _Given:
    if any(isinstance(one, ast.Starred) for one in call.args) or len(call.args) > 3:
        raise UncertainError("loader_arguments", file, call)
    values: dict[str, Any] = dict(zip(_POSITIONS, call.args))
    places = {name: place for place, name in enumerate(values)}
    stars = []
    for number, keyword in enumerate(call.keywords):
        if keyword.arg is None:
            stars.append(file.index.segment(keyword.value))
            continue
        values[keyword.arg] = keyword.value
        places[keyword.arg] = len(call.args) + number
    values = {
        name: value
        for name, value in values.items()
        if not (name in ("sampler", "batch_sampler") and _constant(value) is None)
    }
    if stars:
        # Where shuffle is given, a sampler among the others would have been an error in the original, too.
        plain = _no_samplers(file)
        if len(stars) > 1 or not plain or not stars[0].replace(".", "").replace("_", "").isalnum():
            raise UncertainError("loader_double_star", file, call)
        if "shuffle" in values:
            stars = []
    return _Given(values, places, stars)


def _no_samplers(file: File) -> bool:
    words = {node.value for node in file.nodes(ast.Constant) if isinstance(node.value, str)}
    calls = (call for call in file.nodes(ast.Call) if last_name(call) in ("dict", "update"))
    words |= {str(keyword.arg) for call in calls for keyword in call.keywords}
    return not {"sampler", "batch_sampler"} & words


_NOT = object()


def _constant(node: Any) -> Any:
    """The value of a constant or of nothing (False); _NOT for what is no constant."""
    if node is None:
        return False
    return node.value if isinstance(node, ast.Constant) else _NOT


def _shuffle(file: File, given: _Given, sampler: Any, call: ast.Call) -> str:
    """The shuffle argument of the new sampler, with a comma before it."""
    if sampler is not None:
        made = file.index.qualified_name(sampler.func) if isinstance(sampler, ast.Call) else ""
        kind = made.split(".")[-1]
        plain = made.startswith("torch.utils.data.") and len(sampler.args) == 1 and not sampler.keywords
        if plain and kind in ("RandomSampler", "SequentialSampler"):
            return "" if kind == "RandomSampler" else ", shuffle=False"
        name = kind or file.index.segment(sampler)
        raise UncertainError("own_sampler", file, call, name=name)
    if given.stars:
        return f", shuffle={given.stars[0]}.get('shuffle', False)"
    value = _constant(given.values.get("shuffle"))
    if value is _NOT:
        return f", shuffle={_text(file, given)}"
    return "" if value else ", shuffle=False"


def _condition(file: File, given: _Given) -> str:
    text = _text(file, given)
    return text if dotted(given.values["shuffle"]) else f"({text})"


def _text(file: File, given: _Given) -> str:
    value = given.values.get("shuffle")
    return "False" if value is None else file.index.segment(value)


def _asked_for(
    program: Program,
    draft: Draft,
    loader: Loader,
    file: File,
    call: ast.Call,
    found: list[Training],
    depth: int = 6,
) -> str:
    """The condition under which a call makes a training loader: a new parameter of the function around it.

    Empty where it makes no other. Raises UncertainError where the function cannot get a parameter.
    """
    function = file.function_of(call)
    if function is None or not depth:
        return ""
    sites = live_sites(program, function)
    training = [site for site in sites if _leads_to(program, loader, site[1], found)]
    ways = [_asked_for(program, draft, loader, *site, found, depth - 1) for site in training]
    if not training and (len(sites) < 2 or _is_on_the_way(file, function, found)):
        return ""
    if len(training) == len(sites) and not any(ways):
        return ""
    names = {*parameters(function), *(node.id for node in file.nodes(ast.Name))}
    if not training or function.args.posonlyargs or _PARAMETER in names:
        raise UncertainError("loader_serves_others", file, call)
    draft.of(file).edits.append(added_parameter(file.index, function, f"{_PARAMETER}=False"))
    for (where, site), way in zip(training, ways):
        draft.change_arguments(where, site, [], [f"{_PARAMETER}={way or True}"])
        draft.changed(where, site, _("the training loader is asked for"))
    return _PARAMETER


def _is_on_the_way(file: File, function: Any, found: list[Training]) -> bool:
    """Whether training runs in a function, or in a method of its class."""
    ways = [(where, one) for training in found for where, one in training.scopes if one is not None]
    owner = file.class_of(function)
    return any(one is function or (owner is not None and where.class_of(one) is owner) for where, one in ways)


def _leads_to(program: Program, loader: Loader, site: ast.Call, found: list[Training]) -> bool:
    """Whether a loader comes to training by a call: without knowing what that calls, it is not found."""
    blind = replace(program, found={**program.found, id(site): None})
    return any(
        all(loader.call is not other.call for other in loader_calls(blind, one.file, item, one.known))
        for one in found
        if any(loader.call is other.call for other in one.loaders)
        for item in one.items
        if any(loader.call is other.call for other in loader_calls(program, one.file, item, one.known))
    )


def _iterable(program: Program, file: File, data: ast.expr | None) -> bool:
    made = [definition_of(program, where, origin) for where, origin in origins(program, file, data)]
    bases = [base for one in made if one and isinstance(one[1], ast.ClassDef) for base in one[1].bases]
    return any(dotted(base).split(".")[-1] == "IterableDataset" for base in bases)


def _named(draft: Draft, file: File, call: ast.Call, data: Any) -> str:
    """A name for a dataset that the call makes itself: the sampler needs it, too."""
    statement = file.index.statement_of(call)
    name = "train_dataset"
    if not file.own_line(statement) or hasattr(statement, "body") or name in file.text:
        raise UncertainError("dataset_without_name", file, call)
    draft.of(file).before.setdefault(statement, []).append(f"{name} = {file.index.segment(data)}")
    draft.replace(file, data, name)
    return name
