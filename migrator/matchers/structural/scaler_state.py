"""States of a GradScaler that CUDA saved: ``torch.npu.amp.GradScaler`` looks for one entry more.

It reads ``state_dict["dynamic"]``, which torch's does not save (torch_npu/npu/amp/grad_scaler.py).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from migrator.findings.finding import Edit
from migrator.matchers.context import FileContext, Match, found, put_around
from migrator.matchers.packs import Rule
from migrator.names.flow import candidates
from migrator.names.index import ModuleIndex
from migrator.names.tree import argument_of, bare_name, holder_of, string_value

_ENTRY = "dynamic"
_OPENED = re.compile(rb"\{\s*")  # what stands before the first entry of a dictionary, or its comment


def find(context: FileContext, rule: Rule) -> Iterator[Match]:
    """``load_state_dict`` of such a scaler, with anything but a dictionary that surely has the entry."""
    index = context.index
    for call in index.calls:
        scaler, state = holder_of(call), argument_of(call, "state_dict", 0)
        if scaler is None or state is None or _is_whole(state):
            continue
        if bare_name(call.func) == "load_state_dict" and _is_scaler(index, rule, scaler):
            yield found(context, rule, call, api=index.segment(call.func), edits=_with_entry(index, state))


def _is_whole(state: ast.expr) -> bool:
    """Whether a dictionary that is written there has the entry, or nothing, which no scaler takes."""
    return isinstance(state, ast.Dict) and (
        not state.keys or any(string_value(key) == _ENTRY for key in state.keys)
    )


def _is_scaler(index: ModuleIndex, rule: Rule, node: ast.expr) -> bool:
    made = (each for each in candidates(index, node) if isinstance(each, ast.Call))
    return any(rule.fits(index.qualified_name(each.func)) for each in made)


def _with_entry(index: ModuleIndex, state: ast.expr) -> list[Edit]:
    """The edits that put a dictionary with the entry around what is loaded: a saved one counts more."""
    if isinstance(state, ast.Dict):
        opening = _OPENED.match(index.data, index.start(state))
        return [Edit(opening.end(), opening.end(), f'"{_ENTRY}": True, ')] if opening else []
    plain = isinstance(state, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
    opened, closed = ("", "}") if plain else ("(", ")}")
    return put_around(index, state, f'{{"{_ENTRY}": True, **{opened}', closed)
