"""The models that are trained, where each is wrapped, and what then needs the model inside."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from migrator.convert import models
from migrator.convert.distributed.parallel import CHECKPOINTS
from migrator.convert.distributed.training import Training
from migrator.convert.draft import UncertainError
from migrator.convert.models import (
    Wrapped,
    has_prefix,
    owners_behind,
    owners_of_parameters,
    prepares,
    unmoved,
    wrapped_uses,
)
from migrator.convert.program import (
    LOOPS,
    Home,
    Program,
    below,
    dotted,
    is_main_guard,
    is_stored,
    last_name,
    method,
    method_name,
)
from migrator.names.tree import FUNCTIONS, Function, arguments_of
from migrator.names.whole_file import WholeFile
from migrator.project.distributed_use import listed

_OPTIMIZER = re.compile(r"(?:Adam|SGD|Lamb|LAMB|LARS|Lion|RMSprop|Adafactor|Optimizer|AdamW|Adagrad)\w*$")
_DEPTH = 8


# -- the models ------------------------------------------------------------------


def models_to_wrap(program: Program, found: list[Training], target: str) -> list[Wrapped]:
    """The models of the optimizers, and where to wrap each.

    ``target`` is the one model's name where the user gives it. Raises UncertainError for an optimizer whose
    model cannot be told, where there is none, and where a model has no plain place.
    """
    chosen: dict[Home, list[Home]] = {}
    in_part: set[Home] = set()
    candidates = list(_homes(program))
    if not candidates:
        raise UncertainError("no_optimizer")
    for ways, part in candidates:
        kept = [home for home in ways if _lasts(program, home, found)]
        if target:
            kept = [home for home in kept if target in (home.text, home.text.partition(".")[2])]
        elif not kept:
            raise UncertainError("model_elsewhere", ways[0].scope, home=ways[0])
        if kept and kept[0] not in chosen:
            chosen[kept[0]] = ways
            in_part |= {kept[0]} if part else set()
    if not chosen:
        raise UncertainError("no_such_model", program.file(candidates[0][0][0].scope).tree, target=target)
    return [_wrapped(program, [home, *ways], found, home in in_part) for home, ways in chosen.items()]


def _homes(program: Program) -> Iterator[tuple[list[Home], bool]]:
    """For each model of each optimizer the scopes in which it has a name, the innermost first.

    With each, whether the optimizer takes only some of the parameters.
    """
    for call in program.nodes(ast.Call):
        name = program.name(call)
        own = name.startswith("torch.optim.") and ".lr_scheduler." not in name and ".swa_utils." not in name
        own = own and name.split(".")[-1][0].isupper()
        if not own and not (_OPTIMIZER.match(last_name(call)) and owners_of_parameters(call)):
            continue
        bases = _bases(program, call)
        if not bases:
            raise UncertainError("optimizer_without_model", call)
        each: dict[tuple[WholeFile, str], ast.expr] = {}
        for node, text in bases:
            each.setdefault((program.file(node), text), node)
        for (_, text), node in each.items():
            yield list(_outwards(program, program.home_of(node, text), _DEPTH)), dotted(node) != text


def _bases(program: Program, call: ast.Call) -> list[tuple[ast.expr, str]]:
    """The models whose parameters an optimizer gets, with the names in which they are; none if not plain."""
    nodes = owners_of_parameters(call)
    if not nodes and call.args:
        nodes = owners_behind(program, call.args[0])
    for node in list(nodes):
        if dotted(node) == "self" and isinstance(program.scope_of(node), FUNCTIONS):
            # A method of the model makes its optimizer.
            called = (site.func for site in program.call_sites(program.scope_of(node)))
            nodes += [func.value for func in called if isinstance(func, ast.Attribute)]
            nodes.remove(node)
    found = []
    for node in nodes:
        parts = dotted(node).split(".")
        found.append((node, ".".join(parts[:2] if parts[0] == "self" else parts[:1])))
    return found if all(text and text != "self" for _, text in found) else []


def _outwards(program: Program, home: Home, depth: int) -> Iterator[Home]:
    """A scope, and those from which the model comes to it."""
    yield home
    given: list[ast.AST] = []
    if home.is_parameter:
        values = [program.argument(call, home.scope, home.text) for call in program.call_sites(home.scope)]
        if None in values:
            return
        given = [value for value in values if value is not None]
        if len({(dotted(one), program.scope_of(one)) for one in given}) != 1:
            given = []
    elif isinstance(home.scope, ast.ClassDef):
        made = [unmoved(value) for value, _ in program.values(*home)]
        given = [one for one in made if one is not None and dotted(one) not in ("", home.text)]
        given = given if len({dotted(one) for one in given}) == 1 else []
    elif isinstance(home.scope, FUNCTIONS):  # self.model = model
        pairs = (pair for one in program.own_nodes(home.scope, ast.Assign) for pair in _pairs(one))
        kept = {dotted(target): target for target, value in pairs if dotted(unmoved(value)) == home.text}
        given = [target for name, target in kept.items() if name.startswith("self.")]
    for node in given[:1] if depth else ():
        if dotted(node) not in ("", "self") or not home.is_parameter:
            yield from _outwards(program, program.home_of(node, dotted(node)), depth - 1)


def _pairs(assign: ast.Assign) -> list[tuple[ast.expr, ast.expr]]:
    """What an assignment gives to what: ``self.model, self.optimizer = model, optimizer``."""
    target, value = assign.targets[0], assign.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        return list(zip(target.elts, value.elts))
    return [(one, value) for one in assign.targets]


def _lasts(program: Program, home: Home, found: list[Training]) -> bool:
    """Whether training goes through a scope: elsewhere a wrapped model would be forgotten."""
    scopes = [scope for training in found for scope in training.scopes]
    if isinstance(home.scope, ast.ClassDef):
        return any(program.class_of(scope) in program.family(home.scope) for scope in scopes)
    if isinstance(home.scope, ast.Module):
        return any(program.file(scope).tree is home.scope for scope in scopes)
    return home.scope in scopes


# -- where a model is wrapped ---------------------------------------------------------


def _wrapped(program: Program, ways: list[Home], found: list[Training], in_part: bool) -> Wrapped:
    """Where to wrap: behind what prepares the model, before what uses it."""
    home = ways[0]
    named = program.uses(home)
    at = named[0] if named else program.file(home.scope).tree
    if not any(_is_moved(program, one) for one in ways):
        for inner in _inwards(program, home):
            if _lasts(program, inner, found) and _is_moved(program, inner):
                return _wrapped(program, [inner], found, in_part)
        raise UncertainError("model_not_on_device", at, home=home)
    scope = home.scope
    if isinstance(scope, ast.ClassDef):
        stored = {program.scope_of(node) for node in named if is_stored(node)}
        stored = {one for one in stored if program.class_of(one) is scope}
        if len(stored) != 1:
            raise UncertainError("model_in_methods", scope, home=home)
        scope = stored.pop()
    own = {node for node in named if program.scope_of(node) is scope}
    behind = None
    loops = {one.batches for one in found}
    trains = {one for training in found for one in training.scopes}
    known = home.is_parameter
    for statement in _block_with(scope, own):
        if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
            continue
        inside = below(statement)
        if any(program.definition_of(node) in trains for node in inside):
            break  # functions may use the name themselves
        mentioned = own & inside
        if not mentioned:
            continue
        if loops & inside or not all(prepares(program, node) for node in mentioned):
            break
        behind = statement
        known = known or any(map(is_stored, mentioned))
    if behind is None or not known or not program.own_line(behind):
        raise UncertainError("model_not_ready", at, home=home)
    return Wrapped(home, behind, {one for each in found for one in each.inside}, in_part)


def _block_with(scope: ast.AST, own: set[ast.expr]) -> list[ast.stmt]:
    """The innermost block that holds all of some nodes, below statements that only enclose."""
    block: list[ast.stmt] = getattr(scope, "body", [])
    while True:
        holding = [one for one in block if own & below(one)]
        one = holding[0] if holding else None
        alone = len(holding) == 1
        if isinstance(one, (ast.With, ast.Try)) or (isinstance(one, ast.If) and is_main_guard(one)):
            if alone and not (isinstance(one, ast.If) and one.orelse):
                block = one.body
                continue
        if isinstance(one, (*LOOPS, ast.If)) and _sets_first(one, own):
            if isinstance(one, LOOPS) or (alone and own <= below(*one.body)):
                block = one.body  # each round has a model of its own
                continue
        return block


def _sets_first(statement: ast.For | ast.While | ast.If, own: set[ast.expr]) -> bool:
    """Whether the first one of some nodes in a loop, or below a condition, sets what they name."""
    first = next((one for one in statement.body if own & below(one)), ast.Pass())
    return any(map(is_stored, own & below(first))) and not isinstance(first, (*LOOPS, ast.If))


def _inwards(program: Program, home: Home, depth: int = 6) -> Iterator[Home]:
    """The scopes to which the model is handed: functions, and classes that keep it."""
    for node in program.uses(home) if depth else ():
        call = program.taker_of(node)
        for inner in program.receiving(call, node):
            yield inner
            owner = program.class_of(inner.scope)
            if owner is None or not isinstance(inner.scope, FUNCTIONS):
                continue
            for assign in program.own_nodes(inner.scope, ast.Assign):
                kept = program.home_of_target(assign.targets[0], assign)
                if kept and kept.scope is owner and dotted(unmoved(assign.value)) == inner.text:
                    yield kept
            yield from _inwards(program, inner, depth - 1)  # super().__init__(model)


def _is_moved(program: Program, home: Home) -> bool:
    """Whether the model is put on a device in this scope, or comes from a function that does it."""
    for node in program.uses(home):
        up = program.parent(node)
        if isinstance(up, ast.Attribute) and _is_move(program.parent(up)):
            return True
    for value, _ in program.values(*home):
        for call in ast.walk(value) if value is not None else ():
            found = program.function_of(call)
            if _is_move(call) or (found and any(map(_is_move, ast.walk(found)))):
                return True
    return False


def _is_move(node: ast.AST | None) -> bool:
    if not isinstance(node, ast.Call) or method_name(node) != "to":
        return method_name(node) == "cuda"
    return not all("float" in dotted(one) or "dtype" in dotted(one) for one in arguments_of(node))


# -- what becomes of its uses -------------------------------------------------------------


def follow(program: Program, wrapped: Wrapped) -> None:
    """Note what becomes of the uses. Raises UncertainError where training goes past the wrapper."""
    seen = models.follow(
        program, wrapped, lambda home, node, up: _attribute(program, home, node, up, wrapped)
    )
    for node in wrapped.inner:
        wrapped.inner[node] = _may_be_bare(program, node, wrapped, seen)
    if not wrapped.calls:
        raise UncertainError("model_not_called", wrapped.behind, home=wrapped.home)


def _attribute(program: Program, home: Home, node: ast.expr, up: ast.Attribute, wrapped: Wrapped) -> None:
    """Judge ``model.something``."""
    around = program.parent(up)
    inside = up.attr == "module" and isinstance(around, ast.Attribute)
    asked = around if inside and isinstance(around, ast.Attribute) else up
    if listed("same_when_wrapped", asked.attr):
        return
    if asked.attr in CHECKPOINTS and has_prefix(program, wrapped, node):
        return
    called = program.file(asked).call_of(asked) is not None
    if node in (wrapped.training or ()) and called and _computes(program, node, asked.attr):
        raise UncertainError("training_calls_method", asked, home=home, up=asked)
    if not inside:
        wrapped.inner[node] = False


def _computes(program: Program, node: ast.expr, name: str) -> bool:
    """Whether a method of the model may compute with what it trains."""
    if name in CHECKPOINTS:
        return False
    found = program.method_of(node, name)
    return found is None or _uses_parts(program, found)


def _uses_parts(program: Program, function: Function, depth: int = 4) -> bool:
    """Whether a method uses what was made by calls, as layers and parameters are, or hands the object on."""
    owner = program.class_of(function)
    if owner is None or not depth:
        return True
    for node in ast.walk(function):
        part = program.parent(node) if isinstance(node, ast.Name) and node.id == "self" else None
        if part is None or is_stored(part):
            continue
        if not isinstance(part, ast.Attribute):
            return True
        own = method(owner, part.attr)
        if own is not None and own is not function and not _uses_parts(program, own, depth - 1):
            continue
        values = program.values(owner, f"self.{part.attr}")
        made = any(value is None or isinstance(value, ast.Call) for value, _ in values)
        if (made or not values) and not _is_asked(program, part):
            return True
    return False


def _is_asked(program: Program, part: ast.Attribute) -> bool:
    """``next(self.parameters()).device``, ``next(self.training)``: nothing is computed."""
    around = program.parent(part)
    taker = program.taker_of(around) if around and part.attr in ("parameters", "training") else None
    return isinstance(taker, ast.Call) and dotted(taker.func) == "next"


def _may_be_bare(program: Program, node: ast.expr, wrapped: Wrapped, seen: Sequence[Home]) -> bool:
    """Whether what is wrapped here when the program trains may be the bare model at other times."""
    if program.file(node) is not program.entry:
        return True  # other programs may import the file
    here = Home(program.scope_of(node), dotted(node))
    if not here.is_parameter or here == wrapped.home:
        return False
    given = [program.argument(call, here.scope, here.text) for call in program.call_sites(here.scope)]
    known = {one for home in seen for one in wrapped_uses(program, home, wrapped)}
    return any(value is None or value not in known for value in given)
