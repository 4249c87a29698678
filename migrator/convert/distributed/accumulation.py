"""Gradient accumulation: the ranks exchange gradients only in the step that uses them."""

from __future__ import annotations

import ast
from typing import Any

from migrator.convert.distributed.training import Training
from migrator.convert.draft import Draft
from migrator.convert.models import Wrapped
from migrator.convert.syntax import dotted


def accumulate_without_sync(draft: Draft, training: Training, models: list[Wrapped]) -> None:
    """Plan ``no_sync()`` around forward and backward where ``optimizer.step()`` has a plain condition.

    Where it is not plain nothing changes: the result is the same, with more exchanges.
    """
    body, wrapped = training.batches.body, models[0]
    steps = [
        one
        for one in body
        if isinstance(one, ast.If)
        and not one.orelse
        and any(map(_is_step, ast.walk(one)))
        and "Mod()" in ast.dump(one.test)
    ]
    always = [one for one in body if one not in steps and any(map(_is_step, ast.walk(one)))]
    holding = [
        number for number, one in enumerate(body) if any(node is training.backward for node in ast.walk(one))
    ]
    if len(steps) != 1 or len(holding) != 1 or always:
        return
    file, end = training.file, holding[0]
    calls = [
        number
        for number, one in enumerate(body[: end + 1])
        if any(
            isinstance(node, ast.Call) and dotted(node.func) == wrapped.home.text for node in ast.walk(one)
        )
    ]
    step = body.index(steps[0])
    test = file.index.segment(steps[0].test)
    advice = f"with contextlib.nullcontext() if {test} else {wrapped.home.text}.no_sync():"
    between = body[calls[0] : step] if calls else []
    set_ = {
        dotted(node)
        for one in between
        for node in ast.walk(one)
        if isinstance(getattr(node, "ctx", None), ast.Store)
    }
    asked = {dotted(node) for node in ast.walk(steps[0].test) if isinstance(node, ast.Name)}
    plain = between and len(models) == 1 and step > end and not set_ & asked and wrapped.home.file is file
    if not plain or not all(file.own_line(one) and not _multiline_text(one) for one in between):
        draft.report("exchanged_every_step", file, training.backward, advice=advice)
        return
    first, last = body[calls[0]], body[end]
    context = f"contextlib.nullcontext() if {' '.join(test.split())} else {wrapped.home.text}.no_sync()"
    draft.of(file).contexts[first] = (last, context)
    draft.of(file).imports.append("import contextlib")
    draft.changed(file, first, "gradients are exchanged in the step that uses them", f"with {context}:")


def _is_step(node: Any) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    return node.func.attr == "step" and "sched" not in dotted(node.func.value).lower()


def _multiline_text(statement: Any) -> bool:
    return any(
        isinstance(node, ast.Constant) and isinstance(node.value, str) and node.end_lineno != node.lineno
        for node in ast.walk(statement)
    )
