"""Slices that cut ``"cuda:"`` from a device string by its length: ``int(device[5:])``."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from migrator.findings.finding import Edit
from migrator.matchers.context import FileContext, Match, found, instead_of
from migrator.matchers.packs import Options, Rule
from migrator.names.index import ModuleIndex
from migrator.names.strings import replace_text
from migrator.names.tree import bare_name, called_name
from migrator.project.offers import DEVICE_KEY

if TYPE_CHECKING:
    from migrator.project.project import Project

_TEXTS = ("cuda", "cuda:")


class SliceOptions(Options):
    """``names``: the names of variables and attributes that hold one device string.

    Those that the project reads as devices are known beside them.
    """

    names: tuple[str, ...] = ()

    def words_in(self, project: Project, words: frozenset[str]) -> frozenset[str]:
        """With the names that the project reads as devices."""
        return words | project.offers.names(DEVICE_KEY)


def find(context: FileContext, rule: Rule[SliceOptions]) -> Iterator[Match]:
    """Slices of device strings where the index is read, or the beginning is compared with ``"cuda"``."""
    index, names = context.index, context.project.offers.names(DEVICE_KEY).union(rule.options.names)
    for ref in index.refs:
        holder = index.parent(ref)
        if isinstance(holder, ast.Call) and called_name(holder) == "str":
            ref, holder = holder, index.parent(holder)
        named = ref.args[0] if isinstance(ref, ast.Call) and ref.args else ref
        if bare_name(named) not in names or not isinstance(holder, ast.Subscript):
            continue
        if isinstance(holder.slice, ast.Slice) and holder.value is ref:
            edits = _edits(index, holder, holder.slice)
            if edits:
                yield found(context, rule, holder, api=index.segment(holder), edits=edits)


def _edits(index: ModuleIndex, sliced: ast.Subscript, part: ast.Slice) -> list[Edit]:
    """The edits where a slice is made a number, or compared with ``"cuda"``; none for anything else."""
    parent = index.parent(sliced)
    if isinstance(parent, ast.Compare):
        operands = (parent.left, *parent.comparators)
        texts = [each for each in operands if isinstance(each, ast.Constant) and each.value in _TEXTS]
        edits = [edit for text in texts for edit in _shortened(index, part.upper, len(str(text.value)))]
        return edits + [
            edit for text in texts if edits for edit in replace_text(index, text, "cuda", "npu", 1)
        ]
    number = isinstance(parent, ast.Call) and called_name(parent) == "int" and sliced in parent.args
    if number or (isinstance(parent, ast.Attribute) and parent.attr in ("isdigit", "isdecimal", "isnumeric")):
        return _shortened(index, part.lower, len("cuda:"))
    return []


def _shortened(index: ModuleIndex, bound: ast.expr | None, length: int) -> list[Edit]:
    """The bound of a slice that is ``length``, or the length of ``"cuda"``, as it is for an NPU."""
    if isinstance(bound, ast.Constant) and type(bound.value) is int and bound.value == length:
        return [instead_of(index, bound, str(length - 1))]
    if isinstance(bound, ast.Call) and called_name(bound) == "len" and len(bound.args) == 1:
        text = bound.args[0]
        if isinstance(text, ast.Constant) and text.value in _TEXTS:
            return replace_text(index, text, "cuda", "npu", 1)
    return []
