"""What trains in a program: its batch loop, the loader that it runs over, its epoch loop, and the model."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

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
class Epochs:
    """The loop over epochs, and what the training loader is called in it (empty: it has no plain name)."""

    file: File
    loop: ast.For
    loader: str


@dataclass(frozen=True, eq=False)
class Training:
    """A loop over batches that trains. ``scopes``: the functions on the way to it (None: a file's margin)."""

    file: File
    backward: ast.Call
    batches: ast.For
    loaders: tuple[tuple[File, ast.Call], ...]
    epochs: Epochs | None
    scopes: tuple[tuple[File, Any], ...]


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
    found: dict[int, Training] = {}
    backwards = 0
    for file in program.files.values():
        for call in file.nodes(ast.Call):
            if isinstance(call.func, ast.Attribute) and call.func.attr == "backward":
                backwards += 1
                for training in _above(program, file, call, call, (), _DEPTH):
                    found.setdefault(id(training.batches), training)
    if not found:
        what = "no loop that calls backward() runs over a DataLoader that could be found" if backwards else ""
        raise UncertainError(what or "nothing calls backward()", "Name the training script with -m FILE.")
    return list(found.values())


def _above(
    program: Program, file: File, node: Any, backward: ast.Call, scopes: tuple[Any, ...], depth: int
) -> Iterator[Training]:
    child, up = node, node.parent
    while up is not None:
        if isinstance(up, ast.For) and child in up.body:
            loaders = loader_calls(program, file, up.iter)
            if loaders:
                way: list[tuple[File, Any]] = [*scopes, (file, function_of(up))]
                epochs = _epochs(program, file, up, loader_name(file, up.iter), way, _DEPTH)
                for place in way:  # grows: those that call the ones before, up to the start of the program
                    callers = call_sites(program, place[1]) if place[1] is not None else []
                    more = [(where, function_of(call)) for where, call in callers]
                    way.extend(one for one in more if one not in way)
                yield Training(file, backward, up, tuple(loaders), epochs, tuple(way))
                return
        if isinstance(up, FUNCTIONS) and child in up.body:
            if depth:
                for where, call in call_sites(program, up):
                    yield from _above(program, where, call, backward, (*scopes, (file, up)), depth - 1)
            return
        child, up = up, getattr(up, "parent", None)


def stripped(node: Any) -> Any:
    """What ``enumerate``, ``tqdm`` and the like are put around."""
    while isinstance(node, ast.Call) and node.args:
        name = dotted(node.func).split(".")[-1]
        if not listed("pass_items_on", name):
            break
        node = node.args[0]
    return node


def loader_calls(program: Program, file: File, node: Any) -> list[tuple[File, ast.Call]]:
    """The DataLoader calls from which an iterable comes; none where that is not known."""
    found: list[tuple[File, ast.Call]] = []
    for where, origin in program.origins(file, stripped(node)):
        inner = stripped(origin)
        if inner is not origin:
            deeper = loader_calls(program, where, inner)
        elif isinstance(origin, ast.Call) and listed("loaders", where.called(origin)):
            deeper = [(where, origin)]
        else:
            return []
        if not deeper:
            return []
        found += [one for one in deeper if all(one[1] is not other[1] for other in found)]
    return found


def loader_name(file: File, node: Any) -> str:
    """What the loader under an iterable is called there: ``loader``, ``self.loader``, or nothing plain."""
    node = stripped(node)
    if isinstance(node, ast.Name):
        values = bindings(file, function_of(node), node.id)
        if len(values) == 1 and values[0][0] is not None and stripped(values[0][0]) is not values[0][0]:
            return dotted(stripped(values[0][0]))
    return dotted(node)


def _epochs(
    program: Program, file: File, loop: Any, text: str, way: list[tuple[File, Any]], depth: int
) -> Epochs | None:
    child, up = loop, loop.parent
    while up is not None:
        if isinstance(up, ast.For) and child in up.body and isinstance(up.target, ast.Name):
            if isinstance(up.iter, ast.Call) and _counts(up.iter):
                return Epochs(file, up, text if _outside(file, up, text) else "")
        if isinstance(up, FUNCTIONS) and child in up.body:
            sites = call_sites(program, up)
            if len(sites) != 1 or not depth:
                return None
            where, call = sites[0]
            way.append((where, function_of(call)))
            return _epochs(program, where, call, _renamed(up, call, text), way, depth - 1)
        child, up = up, getattr(up, "parent", None)
    return None


def _counts(call: ast.Call) -> bool:
    inner = stripped(call)
    name = dotted(inner.func).split(".")[-1] if isinstance(inner, ast.Call) else ""
    return name in ("range", "trange", "count")


def _outside(file: File, loop: ast.For, text: str) -> bool:
    """Whether a name is bound outside of the loop."""
    stores = [
        node
        for node in ast.walk(loop)
        if dotted(node) == text and isinstance(getattr(node, "ctx", None), ast.Store)
    ]
    return bool(text) and not stores


def _renamed(function: Any, call: ast.Call, text: str) -> str:
    """What a function's name for something is called where the function is called."""
    first, _, rest = text.partition(".")
    if first == "self" and class_of(function):
        base = dotted(call.func.value) if isinstance(call.func, ast.Attribute) else ""
        return f"{base}.{rest}" if base and function.name != "__init__" else ""
    if first in parameters(function):
        given = dotted(argument(call, function, first))
        return f"{given}.{rest}".rstrip(".") if given else ""
    return text


def homes(program: Program) -> list[list[Home]]:
    """For each optimizer the scopes in which its model has a name, the innermost first.

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
            if len({(id(where), text) for where, _, text in bases}) != 1:
                raise UncertainError(
                    "it is not plain of which one model the optimizer takes the parameters",
                    "Wrap each model that is trained: model = DistributedDataParallel(model)",
                    file,
                    call,
                )
            where, node, text = bases[0]
            found.append(list(_outwards(program, _home(where, node, text), _DEPTH)))
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


def _home(file: File, node: Any, text: str) -> Home:
    function = function_of(node)
    if text.startswith("self."):
        return Home(file, class_of(function), text)
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
                yield from _outwards(program, _home(where, node, text), depth - 1)
        return
    else:
        return
    outer = {dotted(unmoved(value)) for value, _ in values if value is not None} - {"", home.text}
    if len(outer) == 1:
        text = outer.pop()
        node = next(unmoved(value) for value, _ in values if dotted(unmoved(value)) == text)
        yield from _outwards(program, _home(home.file, node, text), depth - 1)


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


def chosen(candidates: list[list[Home]], found: list[Training], target: str) -> list[Home]:
    """The scope to wrap the model in, and those around it that have it too.

    It is one through which the training goes: elsewhere the wrapped model would be
    forgotten. ``target`` is the model's name where the user gives one. Raises UncertainError.
    """
    lasting = []
    for ways in candidates:
        kept = [home for home in ways if lasts(home, found)]
        if target:
            kept = [home for home in kept if target in (home.text, home.text.partition(".")[2])]
        if kept:
            lasting.append(kept)
    first = lasting[0] if lasting else []
    if not first or any(not kept[0].same(first[0]) for kept in lasting):
        file = candidates[0][0].file
        what = "several models are trained" if lasting else "the model is not where the training is"
        raise UncertainError(
            f"{what}: it is not plain which name to wrap", "model = DistributedDataParallel(model)", file
        )
    if len(lasting) < len(candidates) and not target:
        raise UncertainError(
            "the optimizers are of several models", "model = DistributedDataParallel(model)", first[0].file
        )
    every = next(ways for ways in candidates if any(home is first[0] for home in ways))
    return [first[0], *every]


def lasts(home: Home, found: list[Training]) -> bool:
    """Whether training goes through a scope: elsewhere a wrapped model would be forgotten."""
    for training in found:
        for file, function in training.scopes:
            if isinstance(home.scope, ast.ClassDef):
                if class_of(function) is home.scope:
                    return True
            elif file is home.file and (function is home.scope or home.scope is None):
                return True
    return False
