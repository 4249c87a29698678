"""The plan of a conversion: every change that makes a program for one device one for many."""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from typing import Any

from migrator.convert.distributed.changes.accumulation import accumulate_without_sync
from migrator.convert.distributed.changes.batches import check_batches, share_drawn
from migrator.convert.distributed.changes.devices import use_own_device
from migrator.convert.distributed.changes.differences import report_differences
from migrator.convert.distributed.changes.leaving import leave_together
from migrator.convert.distributed.changes.loaders import share_loaders
from migrator.convert.distributed.changes.meters import average_in_closures, reduce_meters
from migrator.convert.distributed.changes.metrics import reduce_metrics
from migrator.convert.distributed.find.iterables import counts
from migrator.convert.distributed.find.models import models_to_wrap
from migrator.convert.distributed.find.parallel import (
    NAMES,
    Parallel,
    parallels,
    prefixed,
    take_its_place,
    wraps,
)
from migrator.convert.distributed.find.training import Training, trainings
from migrator.convert.distributed.find.uses import follow
from migrator.convert.draft import DIST, Draft, UncertainError
from migrator.convert.models import Wrapped, free_models, use_the_model_inside
from migrator.convert.program import File, Program
from migrator.convert.syntax import dotted, is_main_guard, is_stored, last_name, method_name
from migrator.convert.texts import sources
from migrator.convert.write import first_argument
from migrator.language import _
from migrator.project.distributed_use import listed
from migrator.project.imports import Read

_IMPORTS = [f"import {name}" for name in ("builtins", "gc", "json", "logging", "os", "subprocess", "sys")]
_CLASS = "from torch.nn.parallel import DistributedDataParallel"
_OWN_DEVICE = "[torch.cuda.current_device()] if torch.cuda.is_available() else None"


def plan(program: Program, read: Read, target: str = "", others: Collection[str] = ()) -> Draft:
    """The changes that convert a program. ``target``: the name of the model, where it has to be given.

    ``others`` are the project's Python files, ``read`` gives their texts. Raises UncertainError where a
    change that is needed cannot be placed.
    """
    draft = Draft()
    found = trainings(program)
    models = models_to_wrap(program, found, target)
    parallel = parallels(program)
    _data_parallel(program, draft, parallel)
    for model in models:
        own = [one for one in parallel if len(models) == 1 or wraps(one, model)]
        model.prefixed = prefixed(own, program, others, read)
        model.unless = frozenset(test for one in own for test in one.tests)
        for one in own[:1]:
            take_its_place(program, model, one)
        follow(program, model, found)
        message = "the model inside of DistributedDataParallel"
        use_the_model_inside(draft, model, message)
        _wrap(program, draft, model, bool(own), model is models[0])
    check_batches(found, models)
    share_loaders(program, draft, found)
    share_drawn(program, draft, found)
    use_own_device(program, draft)
    for training in found:
        _set_epoch(program, draft, training)
        accumulate_without_sync(draft, training, models)
    reduce_metrics(program, draft, found)
    reduce_meters(program, draft, found)
    average_in_closures(program, draft, found)
    leave_together(program, draft, found)
    show_bars_once(program, draft)
    _rank_zero(program, draft)
    report_differences(program, draft, found)
    _set_up(program, draft, models)
    return draft


def _wrap(program: Program, draft: Draft, wrapped: Wrapped, parallel: bool, first: bool) -> None:
    home = wrapped.home
    options = f", device_ids={_OWN_DEVICE}" if parallel else ""
    if len(wrapped.calls) > 1:  # a later call must not write the buffers with which an earlier one computed
        options += ", broadcast_buffers=False"
    if home.in_part:  # the others may get no gradient
        options += ", find_unused_parameters=True"
    line = f"{home.text} = DistributedDataParallel({home.text}{options})"
    changes = draft.of(home.file)
    if home.file is not program.entry:  # other programs may import the file
        line = f"if dist.is_initialized():\n    {line}"
        changes.imports.append(DIST)
    changes.after.setdefault(wrapped.behind, []).append(line)
    changes.imports.append(_CLASS)
    message = "the model is wrapped: gradients are averaged over the ranks"
    draft.changed(home.file, wrapped.behind, message, "INSERT", line)
    named = {node.id for _, node in program.nodes(ast.Name)}
    named |= {node.attr for _, node in program.nodes(ast.Attribute)}
    if first and any("BatchNorm" in name for name in named):
        draft.report("batch_norm", home.file, wrapped.behind, home=home)


def _data_parallel(program: Program, draft: Draft, found: list[Parallel]) -> None:
    """Take nn.DataParallel away, with its guards; other programs that import a file keep it."""
    for file, node in program.nodes(ast.Name, ast.Attribute):
        up = file.parent(node)
        if file.index.qualified_name(node) not in NAMES:
            continue
        if isinstance(up, (ast.alias, ast.Attribute)) or is_stored(node):
            continue
        if not isinstance(up, ast.Call) and not isinstance(file.parent(up), ast.Call):
            raise UncertainError("data_parallel_used", file, node)
        if not isinstance(up, ast.Call) or up.func is not node:  # isinstance(model, nn.DataParallel)
            both = f"{file.index.segment(node)}, DistributedDataParallel"
            both = both if isinstance(up, ast.Tuple) else f"({both})"
            draft.replace(file, node, "DistributedDataParallel" if file is program.entry else both)
            draft.of(file).imports.append(_CLASS)
    for file, call in ((one.file, one.call) for one in found):
        draft.changed(file, call, "DistributedDataParallel takes its place")
        assign = file.parent(call)
        plain = isinstance(assign, ast.Assign) and dotted(assign.targets[0]) == dotted(call.args[0])
        block = file.parent(assign)
        if file is not program.entry:
            inner, whole = file.index.segment(call.args[0]), file.index.segment(call)
            code = f"{inner} if dist.is_initialized() else {whole}"
            draft.replace(file, call, code if isinstance(assign, (ast.Assign, ast.Return)) else f"({code})")
            draft.of(file).imports.append(DIST)
            continue
        draft.of(file).edits += first_argument(file.index, call)
        if plain and isinstance(block, ast.If) and assign in block.body and all(map(_only_wraps, block.body)):
            if block.orelse or not file.own_line(block):
                raise UncertainError("data_parallel_condition", file, block)
            draft.of(file).removed.add(block)
        elif plain and file.own_line(assign) and not file.is_alone(assign):
            draft.of(file).removed.add(assign)


def _only_wraps(statement: ast.stmt) -> bool:
    """Whether a statement wraps a model for several devices, or says so."""
    called = last_name(getattr(statement, "value", None))
    if isinstance(statement, ast.Assign):
        return called.endswith("DataParallel")
    return isinstance(statement, ast.Expr) and called in ("print", "info")


def _set_epoch(program: Program, draft: Draft, training: Training) -> None:
    epochs = training.epochs
    if training.drawn:
        return
    if epochs is None or not epochs.loader:
        rounds = isinstance(training.batches, ast.While) or counts(training.batches.iter)
        key = "same_order_in_rounds" if rounds else "same_order"
        draft.report(key, training.file, training.batches)
        return
    line = f"{epochs.loader}.sampler.set_epoch({epochs.counter})"
    first = epochs.loop.body[0]
    if not epochs.file.own_line(first):
        draft.report("loop_of_one_line", epochs.file, epochs.loop, line=line)
        return
    if epochs.file is not program.entry:
        line = f"if dist.is_initialized():\n    {line}"
        draft.of(epochs.file).imports.append(DIST)
    lines = draft.of(epochs.file).first.setdefault(epochs.loop, [])
    if line not in lines:
        lines.append(line)
        draft.changed(epochs.file, epochs.loop, _("each epoch has an order of its own"), "INSERT", line)


def _rank_zero(program: Program, draft: Draft) -> None:
    """Plan it for the statements that write files."""
    for file, node in program.nodes(ast.Expr):
        call = node.value
        name = file.called(call) or f"?.{method_name(call)}" if isinstance(call, ast.Call) else ""
        if not name or not listed("rank_zero", name):
            continue
        test = "dist.get_rank() == 0"
        if file is not program.entry:
            test = f"not dist.is_initialized() or {test}"
        if not file.own_line(node) or _in_open(file, node):
            draft.report("written_by_every_rank", file, node, test=test)
            continue
        draft.of(file).around[node] = (node, f"if {test}:")
        draft.of(file).imports.append(DIST)
        draft.changed(file, node, _("one rank writes for all"))


def _in_open(file: File, node: ast.AST) -> bool:
    """Whether the file that is written is opened around a statement: that one rank does, too."""
    function = file.function_of(node)
    withs = (up for _, up in file.above(node) if isinstance(up, ast.With))
    items = (item for up in withs if file.function_of(up) is function for item in up.items)
    return any("id='open'" in ast.dump(item.context_expr) for item in items)


def _set_up(program: Program, draft: Draft, models: Sequence[Wrapped]) -> None:
    entry = program.entry
    changes = draft.of(entry)
    changes.imports[:0] = [*_IMPORTS, "import torch", DIST]
    changes.header = sources("helpers.py", ["setup_distributed", "leave_distributed"])
    tree = entry.index.tree
    guard: Any = next(filter(is_main_guard, tree.body), None)
    wrapped = ((model.home, model.behind) for model in models)
    call, end = "setup_distributed()", [*free_models(entry, guard, wrapped), "leave_distributed()"]
    if guard is not None and not _works_above(entry, guard):
        if not entry.own_line(guard.body[0]):
            raise UncertainError("main_block", entry, guard)
        changes.first.setdefault(guard, [])[:0] = [call, *draft.set_up]
        if not _leaves(guard.body[-1]):
            changes.last.setdefault(guard, []).extend(end)
    else:
        guard = None
        changes.header += "\n\n" + "\n".join([call, *draft.set_up]) + "\n"
        if not _leaves(tree.body[-1]):
            changes.end.extend(end)
    message = _("the ranks find each other, and part at the end")
    draft.changed(entry, guard or tree.body[0], message, "INSERT", call)


def _works_above(entry: File, guard: Any) -> bool:
    """Whether something outside of the main block and of functions puts things on a device."""
    for node in entry.nodes(ast.Call):
        if entry.function_of(node) is None and not guard.lineno <= node.lineno <= guard.end_lineno:
            name = entry.called(node)
            asks = name.endswith(("is_available", "device_count"))
            if method_name(node) in ("to", "cuda", "backward") or (
                name.startswith("torch.cuda.") and not asks
            ):
                return True
    return False


def _leaves(statement: ast.stmt) -> bool:
    text = ast.dump(statement)
    return isinstance(statement, ast.Raise) or "attr='exit'" in text or "id='exit'" in text


def show_bars_once(program: Program, draft: Draft) -> None:
    """Plan ``disable=`` for the bars that have none."""
    for file, call in program.nodes(ast.Call):
        given = any(one.arg in ("disable", None) for one in call.keywords)
        if given or not listed("bars", file.called(call)):
            continue
        disable = "disable=dist.get_rank() != 0"
        if file is not program.entry or file.function_of(call) is None:
            disable = "disable=dist.is_initialized() and dist.get_rank() != 0"
        draft.change_arguments(file, call, [], [disable])
        draft.of(file).imports.append(DIST)
        draft.changed(file, call, _("one rank shows the bar"))
