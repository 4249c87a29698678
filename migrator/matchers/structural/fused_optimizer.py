"""Fused optimizers of torch, which ``torch.npu.amp.GradScaler`` cannot step.

It gives the optimizer itself as ``grad_scaler`` (torch_npu/npu/amp/grad_scaler.py, 1.11 to 2.13), which no
``step`` of torch takes: a TypeError. ``torch.amp.GradScaler("npu")`` asks before.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrator.matchers.context import FileContext, Match, found, instead_of
from migrator.matchers.kinds.argument import added_argument
from migrator.matchers.packs import Rule
from migrator.names.flow import candidates
from migrator.names.index import ModuleIndex
from migrator.names.tree import argument_of, bare_name, hands_on, is_off, kept_as, string_value

_FUSED = "adamw_torch_fused"


def find(context: FileContext, rule: Rule) -> Iterator[Match]:
    """``fused=…`` of an optimizer, also where ``**`` hands it on, in a program with such a GradScaler."""
    if not context.project.program.scales:
        return
    for call, name in context.calls_of(rule):
        for value in _fused(context.index, call):
            if not is_off(value):
                yield found(context, rule, value, api=name, edits=[instead_of(context.index, value, "False")])


def _fused(index: ModuleIndex, call: ast.Call) -> Iterator[ast.expr]:
    """What a call gives as ``fused``, by the keyword or in a dictionary of the file that it hands on."""
    for keyword in call.keywords:
        if keyword.arg == "fused":
            yield keyword.value
        for source in candidates(index, keyword.value) if keyword.arg is None else ():
            if isinstance(source, ast.Call) and bare_name(source.func) == "dict":
                yield from _fused(index, source)
            elif kept_as(index.parent(source), source) == "fused":
                yield source


def find_settings(context: FileContext, rule: Rule) -> Iterator[Match]:
    """Settings of transformers' Trainer with fp16, whose optimizer is the fused one by default."""
    index = context.index
    for call, name in context.calls_of(rule):
        if hands_on(call) or is_off(argument_of(call, "fp16")):
            continue
        chosen = argument_of(call, "optim")
        if chosen is None:
            yield found(
                context, rule, call, api=name, edits=added_argument(index, call, "optim", '"adamw_torch"')
            )
        elif string_value(chosen) == _FUSED:
            yield found(context, rule, chosen, api=name, edits=[instead_of(index, chosen, '"adamw_torch"')])
