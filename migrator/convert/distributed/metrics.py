"""Sums of the training loop, as a running loss, are of one rank's share: they are summed over the ranks.

Validation needs nothing: its loaders are whole on every rank.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Literal

from migrator.convert.distributed.batches import is_of, loader_calls, passed_on
from migrator.convert.distributed.training import Training, feeds, training_view
from migrator.convert.draft import Draft, UncertainError
from migrator.convert.program import (
    Loop,
    Named,
    Node,
    Program,
    below,
    calls_in,
    dotted,
    is_stored,
    method_name,
    names_below,
    names_set,
)
from migrator.language import N_, _
from migrator.names.tree import FUNCTIONS, argument_of, called_name, holder_of

_SUMMED = N_("summed over all ranks")
_WORLD = "dist.get_world_size()"
_SAME = {"item", "double", "float", "cpu", "detach", "numpy", "tolist", "long", "int", "round", "max"}
_SAME_BY_CALL = ("float", "int", "round", "max")
_SHOWS = (ast.Call, ast.JoinedStr, ast.Tuple, ast.FormattedValue, ast.Attribute, ast.keyword)

# How a sum is made one of all ranks: as a sum or as a mean, as another one is, or only for the screen.
Use = Literal["sum", "mean", "either", "shown", "unclear"]


def reduce_metrics(draft: Draft, found: list[Training]) -> None:
    """Plan it for the sums whose uses say how; the others are reported, with the lines to write."""
    view = training_view(draft.program)
    for training in found:
        if isinstance(training.batches, ast.For):
            _after_loop(view, draft, training)
            _in_windows(draft, training)
    for training in found:
        _meters(draft, training)
        _others(draft, training)


def _after_loop(program: Program, draft: Draft, training: Training) -> None:
    """What is added up in the loop from nothing before it, and used behind it."""
    loop, always, conditional = training.batches, list[str](), list[str]()
    sums = _sums(program, loop)
    used = {name: uses for name in sums if (uses := _uses_behind(program, loop, name)) is not None}
    for group in _together(program, used):
        every = {_kind(program, training, use, set(used)) for name in group for use in used[name]}
        if not every or all(_counts_rounds(sums[name]) for name in group):
            continue
        unclear = "unclear" in every or {"sum", "mean"} <= every or {"shown", "mean"} <= every
        fixed = every - {"either", "mean"}  # not the same for loaders that are whole
        if unclear or (training.mixed and fixed and not training.when):
            for name in group:
                draft.report("own_share", loop, name=name)
            continue
        lines = [_line(program, loop, name, "mean" in every) for name in group]
        (conditional if training.mixed and fixed else always).extend(lines)
    if conditional:
        always.append(f"if {training.when}:\n" + "\n".join(f"    {line}" for line in conditional))
    if always:
        draft.insert("after", loop, always, _(_SUMMED))


def _line(program: Program, node: ast.AST, name: str, mean: bool) -> str:
    """The line that makes a sum, or a mean, one of all ranks; other programs may import a file."""
    entry = program.file(node) is program.entry
    ranks = _WORLD if entry else f"({_WORLD} if dist.is_initialized() else 1)"
    return f"{name} = sum_over_ranks({name})" + (f" / {ranks}" if mean else "")


def _behind(program: Program, loop: Loop, kind: type[Node]) -> list[Node]:
    """The nodes of a kind behind a loop, in its function."""
    every = program.own_nodes(program.scope_of(loop), kind)
    return [one for one in every if getattr(one, "lineno", 0) > (loop.end_lineno or 0)]


def _statements_before(program: Program, loop: Loop) -> list[ast.stmt]:
    """The statements that run before a loop each time that it runs."""
    found = [*program.file(loop).before(loop)]
    for _child, up in program.above(loop):
        if not isinstance(up, (ast.With, ast.Try, ast.If)):
            break
        found += program.file(loop).before(up)
    return found


def _sums(program: Program, loop: Loop) -> dict[str, list[ast.AugAssign]]:
    """What a loop adds to, by name, in the order of the lines."""
    found: dict[str, list[ast.AugAssign]] = {}
    for node in program.own_nodes(program.scope_of(loop), ast.AugAssign):
        if isinstance(node.op, ast.Add) and dotted(node.target) and node in below(loop):
            found.setdefault(dotted(node.target), []).append(node)
    return found


def _counts_rounds(added: Sequence[ast.AugAssign]) -> bool:
    return all(isinstance(one.value, ast.Constant) for one in added)


def _is_nothing(value: ast.AST | None) -> bool:
    if isinstance(value, ast.Constant):
        return type(value.value) in (int, float) and value.value == 0
    name = dotted(value.func) if isinstance(value, ast.Call) else ""
    return name == "torch.zeros" or (
        isinstance(value, ast.Call) and name == "torch.tensor" and _is_nothing(next(iter(value.args), None))
    )


def _is_begun(program: Program, loop: Loop, name: str) -> bool:
    """Whether the loop's block sets a sum to nothing before it, and nothing else sets it."""
    before = _statements_before(program, loop)
    begun = False
    for node in program.stores.get((program.scope_of(loop), name), ()):
        if isinstance(program.parent(node), ast.AugAssign):
            continue
        value, place = program.stored_value(node)
        if place >= 0:  # a, b = 0, 0
            value = value.elts[place] if isinstance(value, ast.Tuple) else None
        if program.statement_of(node) in before and _is_nothing(value):
            begun = True
        elif node.lineno <= (loop.end_lineno or 0):
            return False
    return begun


def _uses_behind(program: Program, loop: Loop, name: str) -> list[Named] | None:
    """The uses of a sum behind its loop, up to where it is set again; None where it is no plain sum."""
    if not _is_begun(program, loop, name):
        return None
    used: list[Named] = []
    for node in _behind(program, loop, ast.expr):
        if dotted(node) != name or not isinstance(node, (ast.Name, ast.Attribute)):
            continue
        up = program.parent(node)
        if not is_stored(node) or isinstance(up, ast.AugAssign):
            used.append(node)
        elif isinstance(up, ast.Assign):  # loss = loss / n
            inside = (one for one in ast.walk(up.value) if isinstance(one, (ast.Name, ast.Attribute)))
            used += [one for one in inside if dotted(one) == name]
        if is_stored(node):
            break
    return used


def _together(program: Program, sums: dict[str, list[Named]]) -> list[list[str]]:
    """The sums in groups: those that are divided by each other have to be reduced alike."""
    groups = [[name] for name in sums]
    for name, use in ((name, use) for name, used in sums.items() for use in used):
        up = program.parent(use if is_stored(use) else _same_number(program, use))
        near: set[str] = set()
        if isinstance(up, ast.BinOp) and isinstance(up.op, (ast.Div, ast.FloorDiv)):
            near = names_below(up)
        elif is_stored(use) and isinstance(up, ast.AugAssign):
            near = names_below(up.value)
        for other in near & set(sums):
            one, two = (next(group for group in groups if each in group) for each in (name, other))
            if one is not two:
                one += two
                groups.remove(two)
    return [sorted(group, key=list(sums).index) for group in groups]


def _in_windows(draft: Draft, training: Training) -> None:
    """``if i % 100 == 99: print(running / 100); running = 0.0`` in the loop."""
    program, loop = draft.program, training.batches
    for window in loop.body:
        if not isinstance(window, ast.If) or window.orelse or "Mod()" not in ast.dump(window.test):
            continue
        begun = (one for one in window.body if isinstance(one, ast.Assign) and _is_nothing(one.value))
        reset = {dotted(one.targets[0]): one for one in [*begun][::-1]}
        shown = [
            name
            for name, added in _sums(program, loop).items()
            if not _counts_rounds(added) and name in reset
            if any(dotted(one) == name and one not in reset[name].targets for one in ast.walk(window))
        ]
        # A condition on the number of the round alone is the same on every rank.
        asked = names_below(window.test) - {_round_number(loop)}
        set_here = [program.parent(one) for one in below(loop) if is_stored(one) and dotted(one) in asked]
        same = all(isinstance(up, ast.AugAssign) and isinstance(up.value, ast.Constant) for up in set_here)
        if training.mixed or not same:
            for name in shown:
                draft.report("own_share", loop, name=name)
        elif shown:
            lines = [_line(program, loop, name, True) for name in shown]
            draft.insert("first", window, lines, _(_SUMMED))


# -- what the uses of a sum say of it: whether it is to be summed over the ranks, or averaged ----------


def _kind(program: Program, training: Training, use: ast.expr, sums: set[str]) -> Use:
    """What a use of a sum says of it."""
    node: ast.AST = use if is_stored(use) else _same_number(program, use)
    up = program.parent(node)
    if is_stored(use):  # loss /= n
        divided = isinstance(up, ast.AugAssign) and isinstance(up.op, ast.Div)
        return (
            _by(program, training, up.value, sums) if divided and isinstance(up, ast.AugAssign) else "unclear"
        )
    if isinstance(up, ast.BinOp) and isinstance(up.op, (ast.Div, ast.FloorDiv)):
        if up.left is node:
            return _by(program, training, up.right, sums)
        return "either" if sums & names_below(up.left) else "unclear"
    while up is not None and not isinstance(up, ast.stmt):
        fills_in = isinstance(up, ast.BinOp) and isinstance(up.op, ast.Mod) and up.right is node
        if not isinstance(up, _SHOWS) and not fills_in:
            return "unclear"
        node, up = up, program.parent(up)
    return "shown" if isinstance(up, ast.Expr) else "unclear"


def _same_number(program: Program, node: ast.expr) -> ast.expr:
    """What stands for the same number, or that many times it: ``100 * float(node.item())``."""
    up = program.parent(node)
    around: ast.AST | None = None
    if isinstance(up, ast.Attribute) and up.attr in _SAME:
        around = program.parent(up)
        around = around if isinstance(around, ast.Call) else None
    elif isinstance(up, ast.Call) and dotted(up.func) in _SAME_BY_CALL and node in up.args:
        around = up
    elif isinstance(up, ast.BinOp) and isinstance(up.op, ast.Mult):
        around = up if isinstance(up.left if up.right is node else up.right, ast.Constant) else None
    return _same_number(program, around) if isinstance(around, ast.expr) else node


def _by(program: Program, training: Training, node: ast.expr, sums: set[str]) -> Use:
    """What the number by which a sum is divided says of it."""
    while isinstance(node, ast.Call) and dotted(node.func) in ("float", "int", "max") and node.args:
        node = node.args[0]
    if dotted(node) in sums:
        return "either"
    index = _round_number(training.batches)
    if index and isinstance(node, ast.BinOp) and dotted(node.left) == index:
        return "mean" if isinstance(node.op, ast.Add) and isinstance(node.right, ast.Constant) else "unclear"
    answers: set[Use] = set()
    for origin in program.origins(node):
        inner = passed_on(program, origin, training.known) if isinstance(origin, ast.Subscript) else []
        answers |= {_length(program, training, one) for one in [value for value, _ in inner] or [origin]}
    return answers.pop() if len(answers) == 1 else "unclear"


def _round_number(loop: Loop) -> str:
    """What ``enumerate`` counts in."""
    if not isinstance(loop, ast.For) or not isinstance(loop.target, ast.Tuple):
        return ""
    called = [dotted(one.func) for one in calls_in(loop.iter)]
    return dotted(loop.target.elts[0]) if "enumerate" in called else ""


def _length(program: Program, training: Training, node: ast.expr) -> Use:
    """What a number that is the length of something means for a sum that is divided by it."""
    if not isinstance(node, ast.Call) or dotted(node.func) != "len" or len(node.args) != 1:
        return "unclear"
    measured = node.args[0]
    if isinstance(measured, ast.Attribute) and measured.attr in ("dataset", "sampler"):
        if loader_calls(program, measured.value, training.known):
            return "sum" if measured.attr == "dataset" else "mean"
    if loader_calls(program, measured, training.known):
        return "mean"
    if any(is_of(program, drawn, measured) for drawn in training.drawn):
        return "mean"
    own = set(program.origins(measured))
    for data in (argument_of(loader.call, "dataset", 0) for loader in training.loaders):
        if data is not None:
            same = program.scope_of(data) is program.scope_of(measured)
            if (same and ast.dump(data) == ast.dump(measured)) or (own and own == set(program.origins(data))):
                return "sum"
    return "unclear"


# -- objects like ``AverageMeter``, and lists ------------------------------------------------


def _meters(draft: Draft, training: Training) -> None:
    """Objects of a class with ``sum`` and ``count`` that the loop updates."""
    program, loop = draft.program, training.batches
    updated = [dotted(holder_of(one)) for one in calls_in(loop) if method_name(one) == "update"]
    used = {node.id for node in _behind(program, loop, ast.Name)}
    for name in (name for name in dict.fromkeys(updated) if name in used):
        values = program.values(program.scope_of(loop), name)
        each = (value.elts[at] if at >= 0 and isinstance(value, ast.Tuple) else value for value, at in values)
        made = [one for one in each if isinstance(one, ast.Call)]
        owner = program.definition_of(made[0]) if len(made) == 1 else None
        stores = names_set(owner) if isinstance(owner, ast.ClassDef) else set()
        if not {"self.sum", "self.count"} <= stores:
            continue
        before = below(*_statements_before(program, loop))
        resets = (one for one in before if isinstance(one, ast.Call) and dotted(one.func) == f"{name}.reset")
        if not (before >= set(made) or any(resets)):
            draft.report("own_share", loop, name=f"{name}.avg")
            continue
        lines = [f"{name}.{one} = sum_over_ranks({name}.{one})" for one in ("sum", "count")]
        if "self.avg" in stores:
            lines.append(f"{name}.avg = {name}.sum / {name}.count")
        draft.insert("after", loop, lines, _(_SUMMED))


def average_in_closures(draft: Draft, found: list[Training]) -> None:
    """L-BFGS ends its steps by the loss that its closure returns: it has to be the same on every rank.

    Raises UncertainError where that loss has no name.
    """
    program = draft.program
    if "torch.optim.LBFGS" not in map(program.name, program.nodes(ast.Call)):
        return
    for training in found:
        closure = program.scope_of(training.backward)
        if isinstance(closure, FUNCTIONS) and closure is not program.scope_of(training.batches):
            last = closure.body[-1]
            name = dotted(last.value) if isinstance(last, ast.Return) else ""
            if not name:
                raise UncertainError("closure_loss", closure)
            draft.insert("before", last, [_line(program, last, name, True)], _(_SUMMED))


def _others(draft: Draft, training: Training) -> None:
    """Report lists of losses, sums in tables, and running means, which are used behind the loop."""
    program, loop = draft.program, training.batches
    behind = _behind(program, loop, ast.Call)
    taken = names_below(ast.Tuple([one for one in behind if called_name(one) in ("mean", "sum")]))
    for call in calls_in(loop):  # losses.append(loss.item())
        if method_name(call) == "append" and len(call.args) == 1:
            name = dotted(holder_of(call))
            if name in taken and "loss" in ast.dump(call.args[0]).lower():
                draft.report("mean_of_list", call, name=name)
    of_batches = feeds(program, training)
    used = {node.id for node in _behind(program, loop, ast.Name)}
    for node in below(*loop.body):
        name = ""
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Subscript):
            name = dotted(node.target.value)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp):
            name = dotted(node.targets[0])
            name = name if name in names_below(node.value) else ""
        if name in used and program.scope_of(node) is program.scope_of(loop):
            if isinstance(node, (ast.AugAssign, ast.Assign)) and of_batches(node.value):
                draft.report("own_share", loop, name=name)
                used.discard(name)
