"""Sums of the training loop, as a running loss, are of one rank's share: they are summed over the ranks.

Validation needs nothing: its loaders are whole on every rank.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

from migrator.distributed.conditions import training_view
from migrator.distributed.draft import DIST, Draft
from migrator.distributed.find import Training, UncertainError, loader_calls, passed_on
from migrator.distributed.program import (
    File,
    Program,
    bindings,
    dotted,
    function_of,
    parent,
)

SUM = '''\
def sum_over_ranks(value):
    """The sum of a number or a tensor over the ranks: each has it of its own share of the data."""
    if not dist.is_initialized():
        return value
    total = torch.as_tensor(value).detach()
    kind = torch.float32 if total.is_floating_point() else torch.int64
    total = total.to("cuda" if torch.cuda.is_available() else "cpu", kind, copy=True)
    dist.all_reduce(total)
    return total.to(value.device, value.dtype) if torch.is_tensor(value) else total.item()
'''
_WORLD = "dist.get_world_size()"
_SAME = {"item", "double", "float", "cpu", "detach", "numpy", "tolist", "long", "int", "round", "max"}
_SUM, _MEAN, _EITHER, _SHOWN, _UNCLEAR = "sum", "mean", "either", "shown", "unclear"


def reduce_metrics(program: Program, draft: Draft, found: list[Training]) -> None:
    """Plan it for the sums whose uses say how; the others are reported, with the lines to write."""
    view = training_view(program)[0]
    for training in found:
        if isinstance(training.batches, ast.For):
            _after_loop(view, draft, training)
            _in_windows(view, draft, training)
            _meters(view, draft, training)
            _lists(draft, training)


def _after_loop(program: Program, draft: Draft, training: Training) -> None:
    """What is added up in the loop from nothing before it, and used behind it."""
    file, loop = training.file, training.batches
    sums = {name: uses for name in _sums(loop) if (uses := _uses_behind(file, loop, name)) is not None}
    kinds = {name: {_kind(program, training, use, set(sums)) for use in uses} for name, uses in sums.items()}
    always: list[str] = []
    conditional: list[str] = []
    for group in _together(sums):
        every = {kind for name in group for kind in kinds[name]}
        steps = all(_counts_rounds(loop, name) for name in group)
        if steps or not every:
            continue
        if _UNCLEAR in every or {_SUM, _MEAN} <= every or {_SHOWN, _MEAN} <= every:
            for name in group:
                _report(draft, training, name)
            continue
        fixed = every - {_EITHER, _MEAN}
        if training.mixed and fixed and not training.when:
            for name in group:
                _report(draft, training, name)
            continue
        lines = [_line(name, _MEAN in every) for name in group]
        (conditional if training.mixed and fixed else always).extend(lines)
    if conditional:
        always.append(f"if {training.when}:\n" + "\n".join(f"    {line}" for line in conditional))
    _put(draft, training, draft.of(file).after.setdefault(loop, []) if always else [], loop, always)


def _line(name: str, mean: bool) -> str:
    return f"{name} = sum_over_ranks({name})" + (f" / {_WORLD}" if mean else "")


def _put(draft: Draft, training: Training, place: list[str], node: Any, lines: list[str]) -> None:
    if not lines:
        return
    changes = draft.of(training.file)
    place += lines
    changes.imports += ["import torch", DIST]
    changes.helpers.setdefault("sum_over_ranks", SUM)
    for line in lines:
        draft.changed(training.file, node, "the sum is of all ranks", line, "INSERT")


def _report(draft: Draft, training: Training, name: str) -> None:
    draft.report(
        training.file,
        training.batches,
        f"{name} is of each rank's own share of the data",
        f"Behind the loop, before it is shown, write: total = torch.tensor(float({name}), device='cuda'); "
        f"dist.all_reduce(total); {name} = total.item(), and / {_WORLD} where it is a mean, or is divided by a "
        "number of batches",
        "info",
    )


def _block(node: Any) -> list[Any]:
    """The statements among which one stands; none for what is no statement."""
    up = parent(node)
    for name in ("body", "orelse", "finalbody"):
        if node in (getattr(up, name, None) or ()):
            return list(getattr(up, name))
    return []


def _before(loop: Any) -> list[Any]:
    """The statements that run before a loop each time that it runs."""
    found: list[Any] = []
    node = loop
    while True:
        block = _block(node)
        found += block[: block.index(node)] if block else []
        node = parent(node)
        if not isinstance(node, (ast.With, ast.Try, ast.If)):
            return found


def _sums(loop: Any) -> dict[str, list[ast.AugAssign]]:
    """What a loop adds to, by name, in the order of the lines."""
    found: dict[str, list[ast.AugAssign]] = {}
    for node in ast.walk(loop):
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) and dotted(node.target):
            if function_of(node) is function_of(loop):
                found.setdefault(dotted(node.target), []).append(node)
    return dict(sorted(found.items(), key=lambda one: one[1][0].lineno))


def _counts_rounds(loop: Any, name: str) -> bool:
    return all(isinstance(one.value, ast.Constant) for one in _sums(loop)[name])


def _is_nothing(value: Any) -> bool:
    if isinstance(value, ast.Constant):
        return type(value.value) in (int, float) and value.value == 0
    return (
        isinstance(value, ast.Call)
        and dotted(value.func) in ("torch.zeros", "torch.tensor")
        and (dotted(value.func) == "torch.zeros" or _is_nothing(value.args[0] if value.args else None))
    )


def _begun(file: File, loop: Any, name: str) -> Any:
    """The statement of the loop's block that sets a sum to nothing; None where it is set elsewhere, too."""
    stores = [
        node
        for node in file.stores.get(name, ())
        if function_of(node) is function_of(loop) and not isinstance(node.parent, ast.AugAssign)
    ]
    before = _before(loop)
    begun = None
    for node in stores:
        up = node.parent
        value = up.value if isinstance(up, (ast.Assign, ast.AnnAssign)) else None
        if isinstance(up, ast.Tuple) and isinstance(up.parent, ast.Assign):  # a, b = 0, 0
            given = up.parent.value
            value = given.elts[up.elts.index(node)] if isinstance(given, ast.Tuple) else None
            up = up.parent
        if any(up is one for one in before) and _is_nothing(value):
            begun = up
        elif up.lineno <= (loop.end_lineno or 0):
            return None
    return begun


def _uses_behind(file: File, loop: Any, name: str) -> list[Any] | None:
    """The uses of a sum behind its loop, up to where it is set again; None where it is no plain sum."""
    if _begun(file, loop, name) is None:
        return None
    used = []
    for node in file.nodes(ast.Attribute if "." in name else ast.Name):
        if dotted(node) != name or node.lineno <= loop.end_lineno:
            continue
        if function_of(node) is not function_of(loop):
            continue
        if isinstance(node.ctx, ast.Store):
            if isinstance(node.parent, ast.AugAssign):
                used.append(node)
                break
            if isinstance(node.parent, ast.Assign) and name in map(dotted, ast.walk(node.parent.value)):
                continue  # loss = loss / n: the use on the right is judged
            break
        used.append(node)
    return used


def _kind(program: Program, training: Training, node: Any, sums: set[str]) -> str:
    """What a use of a sum says of it."""
    up = node.parent
    if isinstance(node.ctx, ast.Store):  # loss /= n
        return _by(program, training, up.value, sums) if isinstance(up.op, ast.Div) else _UNCLEAR
    node = _same_number(node)
    up = node.parent
    if isinstance(up, ast.BinOp) and isinstance(up.op, (ast.Div, ast.FloorDiv)):
        if up.left is node:
            return _by(program, training, up.right, sums)
        return _EITHER if sums & set(map(dotted, ast.walk(up.left))) else _UNCLEAR
    while not isinstance(up, ast.stmt):
        if isinstance(
            up, (ast.Call, ast.JoinedStr, ast.Tuple, ast.FormattedValue, ast.Attribute, ast.keyword)
        ) or (isinstance(up, ast.BinOp) and isinstance(up.op, ast.Mod) and up.right is node):
            node, up = up, up.parent
        else:
            return _UNCLEAR
    return _SHOWN if isinstance(up, ast.Expr) else _UNCLEAR


def _same_number(node: Any) -> Any:
    """What stands for the same number, or that many times it: ``100 * float(node.item())``."""
    while True:
        up = node.parent
        if isinstance(up, ast.Attribute) and up.attr in _SAME and isinstance(up.parent, ast.Call):
            node = up.parent  # type: ignore[assignment]
        elif (
            isinstance(up, ast.Call)
            and dotted(up.func) in ("float", "int", "round", "max")
            and node in up.args
        ):
            node = up
        elif isinstance(up, ast.BinOp) and isinstance(up.op, ast.Mult):
            other = up.left if up.right is node else up.right
            if not isinstance(other, ast.Constant):
                return node
            node = up
        else:
            return node


def _by(program: Program, training: Training, node: Any, sums: set[str]) -> str:
    """What the number by which a sum is divided says of it."""
    while isinstance(node, ast.Call) and dotted(node.func) in ("float", "int", "max") and node.args:
        node = node.args[0]
    if dotted(node) in sums:
        return _EITHER
    index = _index(training.batches)
    if index and isinstance(node, ast.BinOp) and dotted(node.left) == index:
        return _MEAN if isinstance(node.op, ast.Add) and isinstance(node.right, ast.Constant) else _UNCLEAR
    answers = {_length(program, training, file, one) for file, one in _origins(program, training, node)}
    return answers.pop() if len(answers) == 1 else _UNCLEAR


def _index(loop: Any) -> str:
    """What ``enumerate`` counts in."""
    walked = (one for one in ast.walk(loop.iter) if isinstance(one, ast.Call))
    if any(dotted(one.func) == "enumerate" for one in walked) and isinstance(loop.target, ast.Tuple):
        return dotted(loop.target.elts[0])
    return ""


def _origins(program: Program, training: Training, node: Any) -> Iterator[tuple[File, Any]]:
    for file, one in program.origins(training.file, node):
        inner = passed_on(program, file, one, training.known) if isinstance(one, ast.Subscript) else []
        yield from [(where, value) for where, value, _ in inner] or [(file, one)]


def _length(program: Program, training: Training, file: File, node: Any) -> str:
    """What a number that is the length of something means for a sum that is divided by it."""
    if not isinstance(node, ast.Call) or dotted(node.func) != "len" or len(node.args) != 1:
        return _UNCLEAR
    measured = node.args[0]
    if isinstance(measured, ast.Attribute) and measured.attr in ("dataset", "sampler"):
        if loader_calls(program, file, measured.value, training.known):
            return _SUM if measured.attr == "dataset" else _MEAN
    if loader_calls(program, file, measured, training.known):
        return _MEAN
    for loader in training.loaders:
        data = next(iter(loader.call.args), None)
        data = next((one.value for one in loader.call.keywords if one.arg == "dataset"), data)
        if data is None:
            continue
        if (
            loader.file is file
            and ast.dump(data) == ast.dump(measured)
            and function_of(data) is function_of(measured)
        ):
            return _SUM
        own = {id(one) for _, one in program.origins(file, measured)}
        if own and own == {id(one) for _, one in program.origins(loader.file, data)}:
            return _SUM
    return _UNCLEAR


def _together(sums: dict[str, list[Any]]) -> list[list[str]]:
    """The sums in groups: those that are divided by each other have to be reduced alike."""
    groups = [[name] for name in sums]
    for name, uses in sums.items():
        for use in uses:
            up = _same_number(use).parent if isinstance(use.ctx, ast.Load) else use.parent
            if isinstance(up, ast.BinOp) and isinstance(up.op, (ast.Div, ast.FloorDiv)):
                near = {dotted(one) for one in ast.walk(up)}
            else:
                near = {dotted(one) for one in ast.walk(up.value)} if isinstance(up, ast.AugAssign) else set()
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
        for name in _sums(loop):
            resets = [
                one
                for one in window.body
                if isinstance(one, ast.Assign) and dotted(one.targets[0]) == name and _is_nothing(one.value)
            ]
            if resets and any(
                dotted(node) == name for node in ast.walk(window) if node not in resets[0].targets
            ):
                names.append(name)
        shown = [name for name in names if not _counts_rounds(loop, name)]
        if not shown:
            continue
        if not _same_on_every_rank(loop, window.test) or training.mixed:
            for name in shown:
                _report(draft, training, name)
            continue
        lines = [_line(name, True) for name in shown]
        _put(draft, training, draft.of(file).first.setdefault(window, []), window, lines)


def _same_on_every_rank(loop: Any, test: Any) -> bool:
    """Whether a condition depends on the number of the round alone."""
    stored: dict[str, list[Any]] = {}
    for node in ast.walk(loop):
        if isinstance(getattr(node, "ctx", None), ast.Store):
            stored.setdefault(dotted(node), []).append(node.parent)
    for name in {dotted(node) for node in ast.walk(test) if isinstance(node, (ast.Name, ast.Attribute))}:
        for up in stored.get(name, ()):
            counted = isinstance(up, ast.AugAssign) and isinstance(up.value, ast.Constant)
            if not counted and name != _index(loop):
                return False
    return True


def _meters(program: Program, draft: Draft, training: Training) -> None:
    """Objects of a class with ``sum`` and ``count`` that the loop updates."""
    file, loop = training.file, training.batches
    updated = {
        dotted(node.func.value): None
        for node in ast.walk(loop)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "update"
    }
    for name in updated:
        used = [
            node
            for node in file.nodes(ast.Name)
            if node.id == name
            and node.lineno > (loop.end_lineno or 0)
            and function_of(node) is function_of(loop)
        ]
        made = bindings(file, function_of(loop), name) if used else []
        owners = [program.definition(file, one) for one in _calls(made)]
        if len(owners) != 1 or owners[0] is None or not isinstance(owners[0][1], ast.ClassDef):
            continue
        stores = {
            dotted(one) for one in ast.walk(owners[0][1]) if isinstance(getattr(one, "ctx", None), ast.Store)
        }
        if not {"self.sum", "self.count"} <= stores:
            continue
        if not _fresh(loop, name, made):
            _report(draft, training, f"{name}.avg")
            continue
        lines = [f"{name}.{one} = sum_over_ranks({name}.{one})" for one in ("sum", "count")]
        if "self.avg" in stores:
            lines.append(f"{name}.avg = {name}.sum / {name}.count")
        _put(draft, training, draft.of(file).after.setdefault(loop, []), loop, lines)


def average_in_closures(program: Program, draft: Draft, found: list[Training]) -> None:
    """L-BFGS ends its steps by the loss that its closure returns: it has to be the same on every rank.

    Raises UncertainError where that loss has no name.
    """
    optimizers = (file.called(call) for file in program.files.values() for call in file.nodes(ast.Call))
    if "torch.optim.LBFGS" not in optimizers:
        return
    for training in found:
        closure = function_of(training.backward)
        if closure is None or closure is function_of(training.batches):
            continue
        last = closure.body[-1]
        name = dotted(last.value) if isinstance(last, ast.Return) and last.value is not None else ""
        if not name:
            raise UncertainError(
                "L-BFGS needs the same loss on every rank",
                f"Let the closure return sum_over_ranks(loss) / {_WORLD}, with:\n{SUM}",
                training.file,
                closure,
            )
        lines = [_line(name, True)]
        _put(draft, training, draft.of(training.file).before.setdefault(last, []), last, lines)


def _calls(made: Sequence[tuple[Any, int]]) -> list[Any]:
    found = []
    for value, place in made:
        if place >= 0 and isinstance(value, ast.Tuple):
            value = value.elts[place]
        found.append(value)
    return [one for one in found if isinstance(one, ast.Call)]


def _fresh(loop: Any, name: str, made: Sequence[tuple[Any, int]]) -> bool:
    """Whether an object is made, or reset, in the loop's block before it."""
    before = _before(loop)
    ids = {id(node) for one in before for node in ast.walk(one)}
    resets = (
        node
        for one in before
        for node in ast.walk(one)
        if isinstance(node, ast.Call) and dotted(node.func) == f"{name}.reset"
    )
    return all(id(one) in ids for one in _calls(made)) or any(resets)


def _lists(draft: Draft, training: Training) -> None:
    """``losses.append(loss.item())``: what is made of the list is of one rank."""
    file, loop = training.file, training.batches
    for node in ast.walk(loop):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or len(node.args) != 1:
            continue
        name = dotted(node.func.value)
        if node.func.attr != "append" or "loss" not in ast.dump(node.args[0]).lower():
            continue
        behind = (
            one
            for one in file.nodes(ast.Call)
            if one.lineno > (loop.end_lineno or 0)
            and function_of(one) is function_of(loop)
            and dotted(one.func).split(".")[-1] in ("mean", "sum")
            and name in map(dotted, ast.walk(one))
        )
        if name and next(behind, None) is not None:
            draft.report(
                file,
                node,
                f"{name} is of each rank's own share of the data",
                f"Where its mean is taken write: mean = torch.tensor(sum({name}) / len({name}), device='cuda'); "
                f"dist.all_reduce(mean); mean = mean.item() / {_WORLD}",
                "info",
            )
