"""The scopes in which the models that are trained have names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from migrator.convert.distributed.training import Training
from migrator.convert.draft import UncertainError
from migrator.convert.program import File, Program
from migrator.convert.syntax import argument, class_of, dotted, function_of, parameters
from migrator.convert.values import call_sites, origins

_OPTIMIZER = re.compile(r"(?:Adam|SGD|Lamb|LAMB|LARS|Lion|RMSprop|Adafactor|Optimizer|AdamW|Adagrad)\w*$")

_DEPTH = 8


@dataclass(frozen=True, eq=False)
class Home:
    """A scope in which the model has a name: a function, None for a margin, a class for ``self.name``.

    ``in_part``: an optimizer takes only some of its parameters.
    """

    file: File
    scope: Any
    text: str
    in_part: bool = False

    def same(self, other: Home) -> bool:
        """Whether both are the same name in the same scope."""
        return self.scope is other.scope and self.text == other.text and self.file is other.file


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
                _OPTIMIZER.match(dotted(call.func).split(".")[-1]) and parameters_in(call)
            ):
                continue
            bases = _bases(program, file, call)
            if not bases:
                raise UncertainError("optimizer_without_model", file, call)
            each: dict[tuple[int, str], Home] = {}
            for where, node, text in bases:
                home = replace(home_of(program, where, node, text), in_part=dotted(node) != text)
                each.setdefault((id(where), text), home)
            found += [list(_outwards(program, home, _DEPTH)) for home in each.values()]
    if not found:
        raise UncertainError("no_optimizer")
    return found


def parameters_in(node: Any) -> list[Any]:
    """What ``parameters()`` is asked of inside an expression."""
    return [
        one.func.value
        for one in ast.walk(node)
        if isinstance(one, ast.Call)
        and isinstance(one.func, ast.Attribute)
        and one.func.attr in ("parameters", "named_parameters")
    ]


def _bases(program: Program, file: File, call: ast.Call) -> list[tuple[File, Any, str]]:
    places = [(file, node) for node in parameters_in(call)]
    names = [node for one in call.args[:1] for node in ast.walk(one) if isinstance(node, ast.Name)]
    for name in () if places else names:
        for where, origin in origins(program, file, name):
            places += [(where, node) for node in parameters_in(origin)]
    found = []
    for where, node in places:
        parts = dotted(node).split(".")
        text = ".".join(parts[:2] if parts[0] == "self" else parts[:1])
        found.append((where, node, text))
    return found if all(text and text != "self" for _, _, text in found) else []


def home_of(program: Program, file: File, node: Any, text: str) -> Home:
    """Where a name, or an attribute of ``self``, that a node holds is at home."""
    function = function_of(node)
    owner = class_of(function)
    if text.startswith("self.") and owner is not None:
        for where, one in program.family(file, owner):  # the class that sets it
            if where.on_self(one, text.partition(".")[2]):
                return Home(where, one, text)
        return Home(file, owner, text)
    if function is not None and text not in parameters(function) and not file.bindings(function, text):
        return Home(file, None, text)
    return Home(file, function, text)


def _outwards(program: Program, home: Home, depth: int) -> Iterator[Home]:
    yield home
    if not depth:
        return
    if isinstance(home.scope, ast.ClassDef):
        values = home.file.on_self(home.scope, home.text.partition(".")[2])
    elif home.scope is not None and home.text in parameters(home.scope):
        given = [(w, argument(c, home.scope, home.text)) for w, c in call_sites(program, home.scope)]
        names = {
            (id(where), dotted(node), id(function_of(node))) for where, node in given if node is not None
        }
        if len(names) == 1 and len(given) == sum(node is not None for _, node in given):
            where, node = given[0]
            text = dotted(node)
            if text and text != "self":
                yield from _outwards(program, home_of(program, where, node, text), depth - 1)
        return
    else:
        return
    outer = {dotted(unmoved(value)) for value, _ in values if value is not None} - {"", home.text}
    if len(outer) == 1:
        text = outer.pop()
        node = next(unmoved(value) for value, _ in values if dotted(unmoved(value)) == text)
        yield from _outwards(program, home_of(program, home.file, node, text), depth - 1)


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
            raise UncertainError("model_elsewhere", home.file, home.scope, home=home)
        if kept and not any(kept[0].same(one[0]) for one in models):
            models.append([replace(kept[0], in_part=ways[0].in_part), *ways])
    if not models:
        raise UncertainError("no_such_model", candidates[0][0].file, target=target)
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
