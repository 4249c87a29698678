"""Gradient accumulation: the ranks exchange gradients only in the step that uses them."""

from __future__ import annotations

import ast

from migrator.convert.distributed.find.batches import is_step
from migrator.convert.distributed.find.training import Training
from migrator.convert.draft import Draft
from migrator.convert.models import Wrapped
from migrator.convert.syntax import dotted, ids, stored_below
from migrator.language import _


def accumulate_without_sync(draft: Draft, training: Training, models: list[Wrapped]) -> None:
    """Plan ``no_sync()`` around forward and backward where ``optimizer.step()`` has a plain condition.

    Where it is not plain nothing changes: the result is the same, with more exchanges.
    """
    file, body, wrapped = training.file, training.batches.body, models[0]
    stepping = [number for number, one in enumerate(body) if any(map(is_step, ast.walk(one)))]
    holding = [number for number, one in enumerate(body) if id(training.backward) in ids(one)]
    if len(stepping) != 1 or len(holding) != 1:
        return
    step, end = stepping[0], holding[0]
    condition = body[step]
    if not isinstance(condition, ast.If) or condition.orelse or "Mod()" not in ast.dump(condition.test):
        return
    calls = [
        number
        for number, one in enumerate(body[: end + 1])
        if wrapped.home.text in (dotted(node.func) for node in ast.walk(one) if isinstance(node, ast.Call))
    ]
    test = file.index.segment(condition.test)
    advice = f"with contextlib.nullcontext() if {test} else {wrapped.home.text}.no_sync():"
    between = body[calls[0] : step] if calls else []
    set_ = {dotted(node) for one in between for node in stored_below(one)}
    asked = {dotted(node) for node in ast.walk(condition.test) if isinstance(node, ast.Name)}
    plain = between and len(models) == 1 and step > end and not set_ & asked and wrapped.home.file is file
    if not plain or not all(file.own_line(one) and not _multiline_text(one) for one in between):
        draft.report("exchanged_every_step", file, training.backward, advice=advice)
        return
    first, last = body[calls[0]], body[end]
    model = wrapped.home.text
    head = f"with contextlib.nullcontext() if {' '.join(test.split())} else {model}.no_sync():"
    draft.of(file).around[first] = (last, head)
    draft.of(file).imports.append("import contextlib")
    draft.changed(file, first, _("gradients are exchanged in the step that uses them"))


def _multiline_text(statement: ast.stmt) -> bool:
    return any(
        isinstance(node, ast.Constant) and isinstance(node.value, str) and node.end_lineno != node.lineno
        for node in ast.walk(statement)
    )
