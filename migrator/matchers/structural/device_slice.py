"""Slices that cut ``"cuda:"`` from a device string by its length: ``int(device[5:])``."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from migrator.findings.finding import Edit
from migrator.matchers.context import FileContext, Match, found, instead_of
from migrator.matchers.options import Options
from migrator.matchers.packs import Rule
from migrator.names.index import ModuleIndex
from migrator.names.strings import replace_text
from migrator.names.tree import bare_name, called_name, string_value

_LENGTHS = {4: "3", 5: "4"}  # of "cuda" and "cuda:", and of "npu" and "npu:"


@dataclass(frozen=True)
class SliceOptions(Options):
    """``names``: the names of variables and attributes that hold one device string."""

    names: tuple[str, ...] = ()


def find(context: FileContext, rule: Rule[SliceOptions]) -> Iterator[Match]:
    """Slices of device strings where the index is read, or the beginning is compared with ``"cuda"``."""
    index = context.index
    for ref in index.refs:
        holder = index.parent(ref)
        if isinstance(holder, ast.Call) and called_name(holder) == "str":
            ref, holder = holder, index.parent(holder)
        named = ref.args[0] if isinstance(ref, ast.Call) and ref.args else ref
        if bare_name(named) not in rule.options.names or not isinstance(holder, ast.Subscript):
            continue
        if isinstance(holder.slice, ast.Slice) and holder.value is ref and _reads(index, holder):
            bounds = [holder.slice.lower, holder.slice.upper]
            edits = [edit for bound in bounds if bound for edit in _shortened(index, bound)]
            if edits:
                edits += _compared(index, holder)
                yield found(context, rule, holder, api=index.segment(holder), edits=edits, needs_npu=False)


def _reads(index: ModuleIndex, slice_: ast.Subscript) -> bool:
    """Whether a slice is made a number, or compared with a CUDA device."""
    parent = index.parent(slice_)
    if isinstance(parent, ast.Call):
        return called_name(parent) == "int" and slice_ in parent.args
    if isinstance(parent, ast.Compare):
        texts = map(string_value, (parent.left, *parent.comparators))
        return any(text in ("cuda", "cuda:", "npu", "npu:") for text in texts)
    return isinstance(parent, ast.Attribute) and parent.attr in ("isdigit", "isdecimal", "isnumeric")


def _compared(index: ModuleIndex, slice_: ast.Subscript) -> list[Edit]:
    """The edits of the texts that a slice is compared with."""
    parent = index.parent(slice_)
    operands = (parent.left, *parent.comparators) if isinstance(parent, ast.Compare) else ()
    texts = (each for each in operands if isinstance(each, ast.Constant) and each.value in ("cuda", "cuda:"))
    return [edit for text in texts for edit in replace_text(index, text, "cuda", "npu", 1)]


def _shortened(index: ModuleIndex, bound: ast.expr) -> list[Edit]:
    if isinstance(bound, ast.Constant) and type(bound.value) is int and bound.value in _LENGTHS:
        return [instead_of(index, bound, _LENGTHS[bound.value])]
    if isinstance(bound, ast.Call) and called_name(bound) == "len" and len(bound.args) == 1:
        text = bound.args[0]
        if isinstance(text, ast.Constant) and text.value in ("cuda", "cuda:"):
            return replace_text(index, text, "cuda", "npu", 1)
    return []
