"""The models that are trained, where each is wrapped, and what then needs the model inside."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator

from migrator.convert.distributed.training import Training
from migrator.convert.draft import Draft, UncertainError
from migrator.convert.models import (
    CHECKPOINTS,
    Wrapped,
    owners_behind,
    owners_of_parameters,
    prepares,
    unmoved,
)
from migrator.convert.program import (
    LOOPS,
    Home,
    Program,
    base_name,
    below,
    dotted,
    is_main_guard,
    is_stored,
    method_name,
)
from migrator.convert.write import first_argument
from migrator.light import Declared
from migrator.names.tree import FUNCTIONS, arguments_of, bare_name, called_name
from migrator.names.whole_file import WholeFile
from migrator.project.frameworks import listed
from migrator.project.module_names import Read

_OPTIMIZER = re.compile(r"(?:Adam|SGD|Lamb|LAMB|LARS|Lion|RMSprop|Adafactor|Optimizer|AdamW|Adagrad)\w*$")
_DEPTH = 8
_NAMES = ("torch.nn.DataParallel", "torch.nn.parallel.DataParallel")
_BY_NUMBER = re.compile(r"count|len\(|>|multi|parallel|distributed|n(?:um)?_?gpu")
_LOADS_PREFIXED = re.compile(r"\bDataParallel\(|[\"']module\.|\[7:\]")


# -- the models ------------------------------------------------------------------


def models_to_wrap(program: Program, found: list[Training], target: str) -> list[Wrapped]:
    """The models of the optimizers, and where to wrap each.

    ``target`` is the one model's name where the user gives it. Raises UncertainError for an optimizer whose
    model is unknown, where there is none, and where a model has no plain place.
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
        if not own and not (_OPTIMIZER.match(called_name(call)) and owners_of_parameters(call)):
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
    found = [(node, base_name(node)) for node in nodes]
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


def _pairs(assign: ast.Assign) -> Iterable[tuple[ast.expr, ast.expr]]:
    """What an assignment gives to what: ``self.model, self.optimizer = model, optimizer``."""
    target, value = assign.targets[0], assign.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        return zip(target.elts, value.elts)
    return ((one, value) for one in assign.targets)


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
    return Wrapped(program, home, behind, {one for each in found for one in each.inside}, in_part)


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
        if isinstance(one, (*LOOPS, ast.If)):
            first = next((each for each in one.body if own & below(each)), ast.Pass())
            sets = any(map(is_stored, own & below(first))) and not isinstance(first, (*LOOPS, ast.If))
            if sets and (isinstance(one, LOOPS) or (alone and own <= below(*one.body))):
                block = one.body  # each round has a model of its own
                continue
        return block


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


# -- nn.DataParallel: DistributedDataParallel takes its place, and keeps the names it gave ------------------


class Parallel(Declared):
    """A call of nn.DataParallel, under some conditions. ``perhaps``: one of them asks for several devices."""

    call: ast.Call
    perhaps: bool
    tests: frozenset[str]


def parallels(program: Program) -> list[Parallel]:
    """The calls of nn.DataParallel."""
    found = []
    for call in program.nodes(ast.Call):
        if program.name(call) in _NAMES and call.args:
            scope = program.scope_of(call)
            ways = (up for _, up in program.above(call) if isinstance(up, (ast.If, ast.IfExp)))
            tests = [up.test for up in ways if program.scope_of(up) is scope]
            perhaps = any(_BY_NUMBER.search(program.segment(test)) for test in tests)
            found.append(Parallel(call, perhaps, frozenset(map(ast.dump, tests))))
    return found


def prefixed(found: list[Parallel], program: Program, others: Collection[str], read: Read) -> bool:
    """Whether keys in checkpoints have a ``module.`` before them, as nn.DataParallel puts it there.

    Where a condition chose it, the project's ``others`` say: those that load a checkpoint.
    """
    if not all(one.perhaps for one in found):
        return True
    texts = (read(name) or "" for name in others if name not in program.files) if found else ()
    return any("load_state_dict" in text and _LOADS_PREFIXED.search(text) for text in texts)


def wraps(program: Program, one: Parallel, wrapped: Wrapped) -> bool:
    """Whether a call of nn.DataParallel is about a model, by its name."""
    assigns = program.around(one.call, ast.Assign)
    nodes = [one.call.args[0], *(node for assign in assigns for node in assign.targets)]
    last = wrapped.home.text.rpartition(".")[2]
    return any(dotted(node).rpartition(".")[2] == last for node in nodes)


def replace_parallel(draft: Draft, found: list[Parallel]) -> None:
    """Take nn.DataParallel away, with its guards; other programs that import a file keep it."""
    program = draft.program
    for node in program.nodes(ast.Name, ast.Attribute):
        up = program.parent(node)
        if program.name(node) not in _NAMES or isinstance(up, ast.Attribute) or is_stored(node):
            continue
        around = program.parent(up) if up else None
        if not isinstance(up, ast.Call) and not isinstance(around, ast.Call):
            raise UncertainError("data_parallel_used", node)
        if not isinstance(up, ast.Call) or up.func is not node:  # isinstance(model, nn.DataParallel)
            both = f"{program.segment(node)}, DistributedDataParallel"
            both = both if isinstance(up, ast.Tuple) else f"({both})"
            entry = program.file(node) is program.entry
            draft.replace(node, "DistributedDataParallel" if entry else both)
    for one in found:
        _take_away(draft, one.call)


def _take_away(draft: Draft, call: ast.Call) -> None:
    program, file = draft.program, draft.program.file(call)
    draft.changed(call, "DistributedDataParallel takes its place")
    assign = program.parent(call)
    if file is not program.entry:
        code = f"{program.segment(call.args[0])} if dist.is_initialized() else {program.segment(call)}"
        draft.replace(call, code if isinstance(assign, (ast.Assign, ast.Return)) else f"({code})")
        return
    draft.of(call).edits += first_argument(file, call)
    if not isinstance(assign, ast.Assign) or dotted(assign.targets[0]) != dotted(call.args[0]):
        return
    block = program.parent(assign)
    body = block.body if isinstance(block, ast.If) else []
    shows = [one for one in body if isinstance(one, ast.Expr) and called_name(one.value) in ("print", "info")]
    wraps = [
        one for one in body if isinstance(one, ast.Assign) and called_name(one.value).endswith("DataParallel")
    ]
    if isinstance(block, ast.If) and assign in body and len(shows) + len(wraps) == len(body):
        if block.orelse or not program.own_line(block):
            raise UncertainError("data_parallel_condition", block)
        draft.remove(block)
    elif program.own_line(assign) and not program.is_alone(assign):
        draft.remove(assign)


def take_its_place(program: Program, wrapped: Wrapped, parallel: Parallel) -> None:
    """Put the wrapper before what needs the one of nn.DataParallel; where it comes later, drop ``.module``.

    Raises UncertainError where a checkpoint is loaded before the model can be wrapped.
    """
    scope = program.scope_of(wrapped.behind)
    block = program.file(scope).block(wrapped.behind)
    last = block.index(wrapped.behind)
    first = next((number for number, each in enumerate(block) if parallel.call in below(each)), 0)
    used = [node for node in program.uses(wrapped.home) if program.scope_of(node) is scope]
    named = [[node for node in used if node in below(each)] for each in block]
    for number in range(first, last + 1):
        needing = [node for node in named[number] if _needs_wrapper(program, wrapped, node)]
        if not needing:
            continue
        later = range(number, last + 1)
        if number == first or any(_prepares(program, block[one], named[one]) for one in later):
            raise UncertainError("checkpoint_before", needing[0], home=wrapped.home)
        last = number - 1
        wrapped.behind = block[last]
        break
    for node in [node for number in range(first, last + 1) for node in named[number]]:
        up = program.parent(node)
        if isinstance(up, ast.Attribute) and up.attr == "module" and not _asks(program, up):
            wrapped.bare.append(up)


def _needs_wrapper(program: Program, wrapped: Wrapped, node: ast.expr, depth: int = 3) -> bool:
    """Whether a use has to find a wrapped model: for the keys of a checkpoint, or in another function."""
    up, call = program.parent(node), program.taker_of(node)
    if isinstance(up, ast.Attribute):
        return up.attr in CHECKPOINTS and wrapped.has_prefix(node)
    if not isinstance(call, ast.Call) or call.func is node or not depth:
        return False
    for use in (use for home in program.receiving(call, node) for use in program.uses(home)):
        over = program.parent(use)
        if isinstance(over, ast.Attribute) and over.attr == "module" and not _asks(program, over):
            return True
        if _needs_wrapper(program, wrapped, use, depth - 1):
            return True
    return False


def _asks(program: Program, node: ast.AST) -> bool:
    """Whether a condition around a node asks first if the model is wrapped."""
    tests = (up.test for _, up in program.above(node) if isinstance(up, (ast.If, ast.IfExp)))
    return any(called_name(one) in ("isinstance", "hasattr") for test in tests for one in ast.walk(test))


def _prepares(program: Program, statement: ast.stmt, named: list[ast.expr]) -> bool:
    """Whether a statement changes a model in a way that has to come before it is wrapped."""
    if "requires_grad" in (bare_name(one) for one in ast.walk(statement) if is_stored(one)):
        return True
    around = [*map(program.parent, named)]
    around += [program.parent(up) for up in around if up is not None and bare_name(up) == "module"]
    asked = {up.attr for up in around if isinstance(up, ast.Attribute)} - {"module", *CHECKPOINTS}
    moves = {"cuda", "to", "requires_grad_"}
    return any(
        name in moves or not listed("same_when_wrapped", name) for name in asked if "param" not in name
    )
