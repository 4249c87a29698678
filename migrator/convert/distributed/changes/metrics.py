"""Sums of the training loop, as a running loss, are of one rank's share: they are summed over the ranks.

Validation needs nothing: its loaders are whole on every rank.
"""

from __future__ import annotations

import ast
from typing import Any

from migrator.convert.distributed.changes.divisors import kind_of_use, round_number, same_number
from migrator.convert.distributed.find.conditions import training_view
from migrator.convert.distributed.find.training import Training
from migrator.convert.draft import DIST, Draft
from migrator.convert.program import File, Program
from migrator.convert.syntax import Loop, dotted, is_stored, names_below, stored_below, walk_all
from migrator.language import _

_WORLD = "dist.get_world_size()"


def reduce_metrics(program: Program, draft: Draft, found: list[Training]) -> None:
    """Plan it for the sums whose uses say how; the others are reported, with the lines to write."""
    view = training_view(program)
    for training in found:
        if isinstance(training.batches, ast.For):
            _after_loop(view, draft, training)
            _in_windows(view, draft, training)


def _after_loop(program: Program, draft: Draft, training: Training) -> None:
    """What is added up in the loop from nothing before it, and used behind it."""
    file, loop = training.file, training.batches
    sums = {name: uses for name in _sums(file, loop) if (uses := _uses_behind(file, loop, name)) is not None}
    kinds = {
        name: {kind_of_use(program, training, use, set(sums)) for use in uses} for name, uses in sums.items()
    }
    always: list[str] = []
    conditional: list[str] = []
    for group in _together(file, sums):
        every = {kind for name in group for kind in kinds[name]}
        if not every or all(_counts_rounds(file, loop, name) for name in group):
            continue
        unclear = "unclear" in every or {"sum", "mean"} <= every or {"shown", "mean"} <= every
        fixed = every - {"either", "mean"}  # not the same for loaders that are whole
        if unclear or (training.mixed and fixed and not training.when):
            for name in group:
                report_share(draft, training, name)
            continue
        lines = [line_for(program, file, name, "mean" in every) for name in group]
        (conditional if training.mixed and fixed else always).extend(lines)
    if conditional:
        always.append(f"if {training.when}:\n" + "\n".join(f"    {line}" for line in conditional))
    if always:
        put(draft, training, draft.of(file).after.setdefault(loop, []), loop, always)


def line_for(program: Program, file: File, name: str, mean: bool) -> str:
    """The line that makes a sum, or a mean, one of all ranks; other programs may import a file."""
    ranks = _WORLD if file is program.entry else f"({_WORLD} if dist.is_initialized() else 1)"
    return f"{name} = sum_over_ranks({name})" + (f" / {ranks}" if mean else "")


def put(draft: Draft, training: Training, place: list[str], node: ast.AST, lines: list[str]) -> None:
    """Plan lines at a place of the draft, with the function that they call."""
    place += lines
    draft.call(training.file, "sum_over_ranks", "import torch", DIST)
    for line in lines:
        draft.changed(training.file, node, _("the sum is of all ranks"), "INSERT", line)


def report_share(draft: Draft, training: Training, name: str) -> None:
    """Say that a number is of each rank's share, with the lines to write."""
    draft.report("own_share", training.file, training.batches, name=name)


def behind(file: File, loop: Loop, kind: type) -> list[Any]:
    """The nodes of a kind behind a loop, in its function."""
    function = file.function_of(loop)
    later = (one for one in file.nodes(kind) if one.lineno > loop.end_lineno)
    return [one for one in later if file.function_of(one) is function]


def statements_before(file: File, loop: Any) -> list[Any]:
    """The statements that run before a loop each time that it runs."""
    found: list[Any] = []
    node = loop
    while True:
        found += file.index.before(node)
        node = file.parent(node)
        if not isinstance(node, (ast.With, ast.Try, ast.If)):
            return found


def _sums(file: File, loop: Loop) -> dict[str, list[ast.AugAssign]]:
    """What a loop adds to, by name, in the order of the lines."""
    found: dict[str, list[ast.AugAssign]] = {}
    for node in walk_all([loop]):
        adds = isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) and dotted(node.target)
        if adds and file.function_of(node) is file.function_of(loop):
            found.setdefault(dotted(node.target), []).append(node)
    return dict(sorted(found.items(), key=lambda one: one[1][0].lineno))


def _counts_rounds(file: File, loop: Loop, name: str) -> bool:
    return all(isinstance(one.value, ast.Constant) for one in _sums(file, loop)[name])


def _is_nothing(value: Any) -> bool:
    if isinstance(value, ast.Constant):
        return type(value.value) in (int, float) and value.value == 0
    name = dotted(value.func) if isinstance(value, ast.Call) else ""
    return name == "torch.zeros" or (name == "torch.tensor" and _is_nothing(next(iter(value.args), None)))


def _begun(file: File, loop: Loop, name: str) -> Any:
    """The statement of the loop's block that sets a sum to nothing; None where it is set elsewhere, too."""
    every = file.stores.get((file.function_of(loop), name), ())
    stores = [node for node in every if not isinstance(file.parent(node), ast.AugAssign)]
    before = statements_before(file, loop)
    begun = None
    for node in stores:
        up: Any = file.parent(node)
        value = up.value if isinstance(up, (ast.Assign, ast.AnnAssign)) else None
        if isinstance(up, ast.Tuple) and isinstance(file.parent(up), ast.Assign):  # a, b = 0, 0
            given = file.parent(up).value
            value = given.elts[up.elts.index(node)] if isinstance(given, ast.Tuple) else None
            up = file.parent(up)
        if any(up is one for one in before) and _is_nothing(value):
            begun = up
        elif up.lineno <= (loop.end_lineno or 0):
            return None
    return begun


def _uses_behind(file: File, loop: Loop, name: str) -> list[Any] | None:
    """The uses of a sum behind its loop, up to where it is set again; None where it is no plain sum."""
    if _begun(file, loop, name) is None:
        return None
    used = []
    for node in behind(file, loop, ast.Attribute if "." in name else ast.Name):
        if dotted(node) != name:
            continue
        if is_stored(node):
            if isinstance(file.parent(node), ast.AugAssign):
                used.append(node)
            elif isinstance(file.parent(node), ast.Assign):  # loss = loss / n
                used += [one for one in ast.walk(file.parent(node).value) if dotted(one) == name]
            break
        used.append(node)
    return used


def _together(file: File, sums: dict[str, list[Any]]) -> list[list[str]]:
    """The sums in groups: those that are divided by each other have to be reduced alike."""
    groups = [[name] for name in sums]
    for name, uses in sums.items():
        for use in uses:
            up = file.parent(same_number(file, use)) if isinstance(use.ctx, ast.Load) else file.parent(use)
            near: set[str] = set()
            if isinstance(up, ast.BinOp) and isinstance(up.op, (ast.Div, ast.FloorDiv)):
                near = names_below(up)
            elif isinstance(up, ast.AugAssign):
                near = names_below(up.value)
            for other in near & set(sums):
                one = next(group for group in groups if name in group)
                two = next(group for group in groups if other in group)
                if one is not two:
                    one += two
                    groups.remove(two)
    return [sorted(group, key=list(sums).index) for group in groups]


def _in_windows(program: Program, draft: Draft, training: Training) -> None:
    """``if i % 100 == 99: print(running / 100); running = 0.0`` in the loop."""
    file, loop = training.file, training.batches
    for window in loop.body:
        if not isinstance(window, ast.If) or window.orelse or "Mod()" not in ast.dump(window.test):
            continue
        names = []
        for name in _sums(file, loop):
            resets = [
                one
                for one in window.body
                if isinstance(one, ast.Assign) and dotted(one.targets[0]) == name and _is_nothing(one.value)
            ]
            if resets and any(
                dotted(node) == name for node in ast.walk(window) if node not in resets[0].targets
            ):
                names.append(name)
        shown = [name for name in names if not _counts_rounds(file, loop, name)]
        if not shown:
            continue
        if not _same_on_every_rank(file, loop, window.test) or training.mixed:
            for name in shown:
                report_share(draft, training, name)
            continue
        lines = [line_for(program, file, name, True) for name in shown]
        put(draft, training, draft.of(file).first.setdefault(window, []), window, lines)


def _same_on_every_rank(file: File, loop: Loop, test: ast.expr) -> bool:
    """Whether a condition depends on the number of the round alone."""
    asked = names_below(test) - {round_number(loop)}
    setting = (file.parent(node) for node in stored_below(loop) if dotted(node) in asked)
    return all(isinstance(up, ast.AugAssign) and isinstance(up.value, ast.Constant) for up in setting)
