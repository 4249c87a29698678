"""What trains in a program: its batch loop, the loader that it runs over, its epoch loop, and the model."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from migrator.distributed.conditions import Guard, backward_calls, guards, training_view
from migrator.distributed.names import listed
from migrator.distributed.program import (
    FUNCTIONS,
    File,
    Program,
    argument,
    bindings,
    call_sites,
    class_of,
    dotted,
    function_of,
    on_self,
    parameters,
    yields,
)

_OPTIMIZER = re.compile(r"(?:Adam|SGD|Lamb|LAMB|LARS|Lion|RMSprop|Adafactor|Optimizer|AdamW|Adagrad)\w*$")
_DEPTH = 8


class UncertainError(Exception):
    """Something without which a program cannot be converted was not found, or is not plain."""

    def __init__(self, message: str, advice: str, file: File | None = None, node: Any = None) -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice
        self.file = file
        self.node = node


@dataclass(frozen=True, eq=False)
class Loader:
    """A DataLoader call that makes a training loader. ``only``: where it makes others too, a condition."""

    file: File
    call: ast.Call
    only: str = ""


@dataclass(frozen=True, eq=False)
class Epochs:
    """The loop over epochs, what counts them, and what the loader is called in it (empty: nothing plain)."""

    file: File
    loop: ast.For | ast.While
    counter: str
    loader: str


@dataclass(frozen=True, eq=False)
class Training:
    """A loop over batches that trains. ``scopes``: the functions on the way to it (None: a file's margin).

    ``inside``: the ids of the nodes that run in it with gradients, those of called functions too.
    ``mixed``: the loop runs over other loaders as well, without training; ``when`` is the condition
    under which it trains, empty where there is no plain one. ``known``: what holds where it trains.
    """

    file: File
    backward: ast.Call
    batches: ast.For | ast.While
    loaders: tuple[Loader, ...]
    epochs: Epochs | None
    scopes: tuple[tuple[File, Any], ...]
    inside: frozenset[int]
    known: tuple[Guard, ...]
    mixed: bool
    when: str


@dataclass(frozen=True, eq=False)
class Home:
    """A scope in which the model has a name: a function, None for a margin, a class for ``self.name``."""

    file: File
    scope: Any
    text: str

    def same(self, other: Home) -> bool:
        """Whether both are the same name in the same scope."""
        return self.scope is other.scope and self.text == other.text and self.file is other.file


def trainings(program: Program) -> list[Training]:
    """The program's training loops. Raises UncertainError where there is none over a known loader."""
    view, mixed = training_view(program)
    found: dict[int, Training] = {}
    backwards = backward_calls(program)
    for file, call in backwards:
        for training in _above(view, mixed, file, call, call, (), _DEPTH):
            found.setdefault(id(training.batches), training)
    if not found:
        what = "no loop that calls backward() runs over a DataLoader that could be found" if backwards else ""
        raise UncertainError(what or "nothing calls backward()", "Name the training script with -m FILE.")
    return list(found.values())


def _above(
    program: Program,
    mixed: set[int],
    file: File,
    node: Any,
    backward: ast.Call,
    scopes: tuple[Any, ...],
    depth: int,
) -> Iterator[Training]:
    function = function_of(node)
    known = guards(node, function)
    child, up, inner = node, node.parent, False
    while up is not None:
        if isinstance(up, (ast.For, ast.While)) and child in up.body:
            items = _drawn(up) if inner is False else []
            items = [up.iter, *items] if isinstance(up, ast.For) else items
            ways = [loader_calls(program, file, one, known) for one in items]
            loaders = {id(one.call): one for way in ways for one in way}
            if loaders:
                yield _training(program, mixed, file, backward, up, known, tuple(loaders.values()), scopes)
                return
            inner = inner or (isinstance(up, ast.For) and not counts(up.iter))
        if isinstance(up, FUNCTIONS) and child in up.body:
            sites = call_sites(program, up)
            for where, call in sites if depth else ():
                yield from _above(program, mixed, where, call, backward, (*scopes, (file, up)), depth - 1)
            if sites or class_of(up) is not None:
                return  # a function that is only handed on, as an optimizer's closure, runs where it stands
        child, up = up, getattr(up, "parent", None)


def _drawn(loop: Any) -> list[Any]:
    """The iterators from which a loop draws in each round: ``next(batches)``."""
    found = []
    for node in ast.walk(loop):
        if isinstance(node, ast.Call) and dotted(node.func) == "next" and node.args:
            if not guards(node, loop) and function_of(node) is function_of(loop):
                found.append(node.args[0])
    return found


def _training(
    program: Program,
    mixed: set[int],
    file: File,
    backward: ast.Call,
    loop: Any,
    known: list[Guard],
    loaders: tuple[Loader, ...],
    scopes: tuple[tuple[File, Any], ...],
) -> Training:
    function = function_of(loop)
    doubtful = len(loaders) > 1 and len(call_sites(program, function)) > 1 if function is not None else False
    if doubtful and id(function) in mixed:
        raise UncertainError(
            "the same loop trains and validates, and it is not plain over which loaders",
            "For the training loader write sampler=DistributedSampler(dataset, shuffle=True), without shuffle=.",
            file,
            loop,
        )
    way: list[tuple[File, Any]] = [*scopes, (file, function)]
    text = loader_name(file, loop.iter, known) if isinstance(loop, ast.For) else ""
    epochs = _epochs(program, file, loop, text, way, _DEPTH)
    for place in way:  # grows: those that call the ones before, up to the start of the program
        callers = call_sites(program, place[1]) if place[1] is not None else []
        more = [(where, function_of(call)) for where, call in callers]
        way.extend(one for one in more if one not in way)
    also = any(id(one) in mixed for _, one in (*scopes, (file, function))) or any(one.only for one in loaders)
    inside = frozenset(_with_gradients(program, file, loop))
    when = _when(file, loop, known) if also else ""
    return Training(file, backward, loop, loaders, epochs, tuple(way), inside, tuple(known), also, when)


def _when(file: File, loop: Any, known: list[Guard]) -> str:
    """The text of the one condition under which a loop trains, where it is the same before and behind it."""
    if len(known) != 1 or not known[0][1]:
        return ""
    names = {dotted(node) for node in ast.walk(known[0][0])}
    stored = {dotted(node) for node in ast.walk(loop) if isinstance(getattr(node, "ctx", None), ast.Store)}
    return "" if names & stored - {""} else file.index.segment(known[0][0])


def _with_gradients(program: Program, file: File, loop: Any) -> Iterator[int]:
    """The ids of what runs in a loop with gradients, followed into the project's functions."""
    seen: set[int] = set()
    waiting: list[tuple[File, Any]] = [(file, one) for one in loop.body]
    while waiting:
        where, node = waiting.pop()
        if _without_gradients(node):
            continue
        yield id(node)
        waiting += [(where, one) for one in ast.iter_child_nodes(node)]
        found = program.definition(where, node) if isinstance(node, ast.Call) else None
        if found and isinstance(found[1], FUNCTIONS) and id(found[1]) not in seen:
            seen.add(id(found[1]))
            waiting.append(found)


def _without_gradients(node: Any) -> bool:
    heads: list[Any] = []
    if isinstance(node, FUNCTIONS):
        heads = node.decorator_list
        evaluates = (one for one in ast.walk(node) if isinstance(one, ast.Attribute) and one.attr == "eval")
        if any(evaluates) and not any(
            one.attr == "backward" for one in ast.walk(node) if isinstance(one, ast.Attribute)
        ):
            return True
    elif isinstance(node, (ast.With, ast.AsyncWith)):
        heads = [item.context_expr for item in node.items]
    return any(part in ast.dump(one) for one in heads for part in ("no_grad", "inference_mode"))


def stripped(node: Any) -> Any:
    """What ``enumerate``, ``tqdm`` and the like are put around."""
    while isinstance(node, ast.Call) and node.args:
        name = dotted(node.func).split(".")[-1]
        if not listed("pass_items_on", name):
            break
        node = node.args[0]
    return node


def loader_calls(
    program: Program, file: File, node: Any, known: Sequence[Guard] = (), depth: int = _DEPTH
) -> list[Loader]:
    """The DataLoader calls from which an iterable comes; none where that is not known.

    ``known``: conditions that hold where the iterable stands.
    """
    found: dict[int, Loader] = {}
    for where, origin in program.origins(file, stripped(node)) if depth else ():
        if isinstance(origin, ast.Call) and listed("loaders", where.called(origin)):
            found.setdefault(id(origin), Loader(where, origin))
            continue
        inner = passed_on(program, where, origin, known)
        ways = [loader_calls(program, place, one, known, depth - 1) for place, one, _ in inner]
        if not ways or not all(ways):
            return []
        for (_, _, only), way in zip(inner, ways):
            found.update({id(one.call): replace(one, only=only or one.only) for one in way})
    return list(found.values())


def passed_on(program: Program, file: File, node: Any, known: Sequence[Guard]) -> list[tuple[File, Any, str]]:
    """The iterables whose items an expression gives, each with the condition under which it does."""
    inner = stripped(node)
    if inner is not node:
        return [(file, inner, "")]
    if isinstance(node, ast.Call) and dotted(node.func) == "zip":
        return [(file, one, "") for one in node.args]
    if isinstance(node, ast.Call):
        found = program.definition(file, node)
        for one in yields(found[1]) if found else ():
            loop: Any = one
            while loop is not None and not (
                isinstance(loop, ast.For) and dotted(loop.target) == dotted(one.value)
            ):
                loop = getattr(loop, "parent", None)
            name = dotted(stripped(loop.iter)) if loop is not None else ""
            given = argument(node, found[1], name) if found and name in parameters(found[1]) else None
            return [(file, given, "")] if given is not None else []
    if isinstance(node, ast.IfExp):
        for test, holds in known:
            if ast.dump(test) == ast.dump(node.test):
                return [(file, node.body if holds else node.orelse, "")]
    if isinstance(node, ast.Subscript):
        key = _key(node, known)
        for where, table in program.origins(file, node.value) if key is not None else ():
            if isinstance(table, ast.Dict):
                keys = [getattr(one, "value", None) for one in table.keys]
                return [(where, table.values[keys.index(key)], "")] if key in keys else []
            if isinstance(table, ast.DictComp) and len(table.generators) == 1 and dotted(table.key):
                return [(where, table.value, f"{dotted(table.key)} == {_quoted(key)}")]
    return []


def _key(node: ast.Subscript, known: Sequence[Guard]) -> Any:
    """The key of a subscript, where it is a constant or is compared with one."""
    if isinstance(node.slice, ast.Constant):
        return node.slice.value
    for test, holds in known:
        if holds and isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq) and len(test.ops) == 1:
            value = test.comparators[0]
            if (
                dotted(node.slice)
                and dotted(test.left) == dotted(node.slice)
                and isinstance(value, ast.Constant)
            ):
                return value.value
    return None


def _quoted(key: Any) -> str:
    return f'"{key}"' if isinstance(key, str) and '"' not in key else repr(key)


def loader_name(file: File, node: Any, known: Sequence[Guard] = ()) -> str:
    """What the loader under an iterable is called there: ``loader``, ``self.loader``, or nothing plain."""
    node = stripped(node)
    if isinstance(node, ast.Name):
        values = bindings(file, function_of(node), node.id)
        if len(values) == 1 and values[0][0] is not None and values[0][1] < 0:
            inner = stripped(values[0][0])
            if inner is not values[0][0] or isinstance(inner, ast.Subscript):
                return loader_name(file, inner, known) if not isinstance(inner, ast.Name) else inner.id
    if isinstance(node, ast.Subscript) and dotted(node.value):
        key = _key(node, known)
        return f"{dotted(node.value)}[{_quoted(key)}]" if key is not None else ""
    return dotted(node)


def _epochs(
    program: Program, file: File, loop: Any, text: str, way: list[tuple[File, Any]], depth: int
) -> Epochs | None:
    child, up = loop, loop.parent
    while up is not None:
        counter = _counter(up) if isinstance(up, (ast.For, ast.While)) and child in up.body else ""
        if counter:
            return Epochs(file, up, counter, text if _outside(up, text) else "")
        if isinstance(up, FUNCTIONS) and child in up.body:
            sites = call_sites(program, up)
            if len(sites) != 1 or not depth:
                return None
            where, call = sites[0]
            way.append((where, function_of(call)))
            return _epochs(program, where, call, _renamed(up, call, text), way, depth - 1)
        child, up = up, getattr(up, "parent", None)
    return None


def _counter(loop: Any) -> str:
    """What counts the rounds of a loop: of ``for epoch in range(…)``, or of ``while epoch < …``."""
    if isinstance(loop, ast.For):
        return dotted(loop.target) if isinstance(loop.iter, ast.Call) and counts(loop.iter) else ""
    if isinstance(loop.test, ast.Compare) and isinstance(loop.test.ops[0], (ast.Lt, ast.LtE)):
        counter = dotted(loop.test.left)
        if any(isinstance(one, ast.AugAssign) and dotted(one.target) == counter for one in loop.body):
            return counter
    return ""


def counts(call: Any) -> bool:
    """Whether an iterable is a ``range``."""
    inner = stripped(call)
    name = dotted(inner.func).split(".")[-1] if isinstance(inner, ast.Call) else ""
    return name in ("range", "trange", "count")


def _outside(loop: Any, text: str) -> bool:
    """Whether a name is bound outside of the loop."""
    name = text.partition("[")[0]
    stores = (node for node in ast.walk(loop) if isinstance(getattr(node, "ctx", None), ast.Store))
    return bool(text) and not any(dotted(node) == name for node in stores)


def _renamed(function: Any, call: ast.Call, text: str) -> str:
    """What a function's name for something is called where the function is called."""
    first = re.split(r"[.\[]", text)[0]
    rest = text[len(first) :]
    if first == "self" and class_of(function):
        base = dotted(call.func.value) if isinstance(call.func, ast.Attribute) else ""
        return f"{base}{rest}" if base and function.name != "__init__" else ""
    if first in parameters(function):
        given = dotted(argument(call, function, first))
        return f"{given}{rest}" if given else ""
    return text


def homes(program: Program) -> list[list[Home]]:
    """For each model of each optimizer the scopes in which it has a name, the innermost first.

    Raises UncertainError for an optimizer whose model cannot be told, and where there is none.
    """
    found = []
    for file in program.files.values():
        for call in file.nodes(ast.Call):
            name = file.called(call)
            own = (
                name.startswith("torch.optim.") and ".lr_scheduler." not in name and ".swa_utils." not in name
            )
            if not (own and name.split(".")[-1][0].isupper()) and not (
                _OPTIMIZER.match(dotted(call.func).split(".")[-1]) and _parameters_in(call)
            ):
                continue
            bases = _bases(program, file, call)
            if not bases:
                raise UncertainError(
                    "it is not plain of which model the optimizer takes the parameters",
                    "Wrap each model that is trained: model = DistributedDataParallel(model)",
                    file,
                    call,
                )
            each = {(id(where), text): _home(program, where, node, text) for where, node, text in bases}
            found += [list(_outwards(program, home, _DEPTH)) for home in each.values()]
    if not found:
        raise UncertainError(
            "no optimizer was found, and so no model", "model = DistributedDataParallel(model)", None
        )
    return found


def _parameters_in(node: Any) -> list[Any]:
    """What ``parameters()`` is asked of inside an expression."""
    return [
        one.func.value
        for one in ast.walk(node)
        if isinstance(one, ast.Call)
        and isinstance(one.func, ast.Attribute)
        and one.func.attr in ("parameters", "named_parameters")
    ]


def _bases(program: Program, file: File, call: ast.Call) -> list[tuple[File, Any, str]]:
    places = [(file, node) for node in _parameters_in(call)]
    names = [node for one in call.args[:1] for node in ast.walk(one) if isinstance(node, ast.Name)]
    for name in () if places else names:
        for where, origin in program.origins(file, name):
            places += [(where, node) for node in _parameters_in(origin)]
    found = []
    for where, node in places:
        parts = dotted(node).split(".")
        text = ".".join(parts[:2] if parts[0] == "self" else parts[:1])
        found.append((where, node, text))
    return found if all(text and text != "self" for _, _, text in found) else []


def _home(program: Program, file: File, node: Any, text: str) -> Home:
    function = function_of(node)
    owner = class_of(function)
    if text.startswith("self.") and owner is not None:
        for where, one in program.family(file, owner):  # the class that sets it
            if on_self(where, one, text.partition(".")[2]):
                return Home(where, one, text)
        return Home(file, owner, text)
    if function is not None and text not in parameters(function) and not bindings(file, function, text):
        return Home(file, None, text)
    return Home(file, function, text)


def _outwards(program: Program, home: Home, depth: int) -> Iterator[Home]:
    yield home
    if not depth:
        return
    if isinstance(home.scope, ast.ClassDef):
        values = on_self(home.file, home.scope, home.text.partition(".")[2])
    elif home.scope is not None and home.text in parameters(home.scope):
        given = [(w, argument(c, home.scope, home.text)) for w, c in call_sites(program, home.scope)]
        names = {
            (id(where), dotted(node), id(function_of(node))) for where, node in given if node is not None
        }
        if len(names) == 1 and len(given) == sum(node is not None for _, node in given):
            where, node = given[0]
            text = dotted(node)
            if text and text != "self":
                yield from _outwards(program, _home(program, where, node, text), depth - 1)
        return
    else:
        return
    outer = {dotted(unmoved(value)) for value, _ in values if value is not None} - {"", home.text}
    if len(outer) == 1:
        text = outer.pop()
        node = next(unmoved(value) for value, _ in values if dotted(unmoved(value)) == text)
        yield from _outwards(program, _home(program, home.file, node, text), depth - 1)


def unmoved(node: Any) -> Any:
    """The model in ``model.to(device)`` and ``nn.DataParallel(model)``."""
    while isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("to", "cuda"):
            node = node.func.value
        elif node.args and dotted(node.func).split(".")[-1] == "DataParallel":
            node = node.args[0]
        else:
            break
    return node


def chosen(
    program: Program, candidates: list[list[Home]], found: list[Training], target: str
) -> list[list[Home]]:
    """For each model the scope to wrap it in, and behind it those around that one that have it too.

    It is one through which the training goes: elsewhere the wrapped model would be
    forgotten. ``target`` is the one model's name where the user gives it. Raises UncertainError.
    """
    models: list[list[Home]] = []
    for ways in candidates:
        kept = [home for home in ways if lasts(program, home, found)]
        if target:
            kept = [home for home in kept if target in (home.text, home.text.partition(".")[2])]
        if not kept and not target:
            home = ways[0]
            raise UncertainError(
                f"{home.text} is not where the training is",
                f"{home.text} = DistributedDataParallel({home.text})",
                home.file,
                home.scope,
            )
        if kept and not any(kept[0].same(one[0]) for one in models):
            models.append([kept[0], *ways])
    if not models:
        raise UncertainError(
            f"no optimizer has the parameters of {target}",
            "Name another model with -t.",
            candidates[0][0].file,
        )
    return models


def lasts(program: Program, home: Home, found: list[Training]) -> bool:
    """Whether training goes through a scope: elsewhere a wrapped model would be forgotten."""
    for training in found:
        for file, function in training.scopes:
            if isinstance(home.scope, ast.ClassDef):
                if any(one is class_of(function) for _, one in program.family(home.file, home.scope)):
                    return True
            elif file is home.file and (function is home.scope or home.scope is None):
                return True
    return False
