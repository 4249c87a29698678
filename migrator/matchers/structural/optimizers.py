"""Arguments of optimizers that raise: ``fused`` beside a GradScaler of torch_npu, whole numbers as betas."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrator.findings.finding import Edit
from migrator.matchers.context import FileContext, Match, found, instead_of
from migrator.matchers.packs import Rule
from migrator.names.goes_to import kept_as
from migrator.names.index import ModuleIndex
from migrator.names.made_from import made_from
from migrator.names.tree import bare_name, elements, is_off, last_name, only_target, string_value
from migrator.project.offers import SCALES

_NAME = "betas"


def find_fused(context: FileContext, rule: Rule) -> Iterator[Match]:
    """``fused=…`` of an optimizer, also where ``**`` hands it on, in a program with such a GradScaler.

    ``torch.npu.amp.GradScaler`` gives the optimizer itself as ``grad_scaler``, which no ``step`` of torch
    takes: a TypeError (torch_npu/npu/amp/grad_scaler.py, 1.11 to 2.13). ``torch.amp.GradScaler("npu")`` asks.
    """
    for call, name in context.calls_of(rule) if context.project.offers.of(SCALES) else ():
        for value in _fused(context.index, call):
            if not is_off(value):
                yield found(context, rule, value, api=name, edits=[instead_of(context.index, value, "False")])


def _fused(index: ModuleIndex, call: ast.Call) -> Iterator[ast.expr]:
    """What a call gives as ``fused``, by the keyword or in a dictionary of the file that it hands on."""
    for keyword in call.keywords:
        if keyword.arg == "fused":
            yield keyword.value
        for source in made_from(index, keyword.value) if keyword.arg is None else ():
            if isinstance(source, ast.Call) and bare_name(source.func) == "dict":
                yield from _fused(index, source)
            elif kept_as(index, source) == "fused":
                yield source


def find_betas(context: FileContext, rule: Rule) -> Iterator[Match]:
    """Pairs named ``betas`` with the whole number 0 in them, which becomes a float.

    Adam takes two floats or two tensors since torch 2.6, no whole number.
    """
    index = context.index
    for pair, holder in _pairs(index):
        optimizer = index.qualified_name(holder.func) if isinstance(holder, ast.Call) else ""
        if optimizer.startswith("torch.") and not rule.fits(optimizer):
            continue  # RAdam and others take whole numbers
        whole = [each for each in map(_zero, elements(pair)) if each is not None]
        if whole and len(elements(pair)) == 2 and not any(map(_is_no_beta, elements(pair))):
            edits = [Edit(index.end(each), index.end(each), ".0") for each in whole]
            severity = "" if optimizer.startswith("torch.") else "warning"
            yield found(context, rule, pair, api=optimizer or _NAME, edits=edits, severity=severity)


def _pairs(index: ModuleIndex) -> Iterator[tuple[ast.expr, ast.AST]]:
    """What is given or assigned as ``betas``, each with what it stands in."""
    for call in index.calls:
        yield from ((each.value, call) for each in call.keywords if each.arg == _NAME)
    for string in index.strings:
        holder = index.parent(string)
        if isinstance(holder, ast.Dict) and string_value(string) == _NAME and string in holder.keys:
            yield holder.values[holder.keys.index(string)], holder
    for statement in index.statements:
        value = getattr(statement, "value", None)
        if isinstance(value, (ast.Tuple, ast.List)) and last_name(only_target(statement)) == _NAME:
            yield value, statement


def _zero(node: ast.expr) -> ast.Constant | None:
    """The whole number 0 that a value is, or is a power of: ``0 ** ratio``."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        node = node.left
    return node if isinstance(node, ast.Constant) and type(node.value) is int and not node.value else None


def _is_no_beta(node: ast.expr) -> bool:
    """Whether a value is a number that no optimizer takes: betas are below 1, those of a VAE may be more."""
    value = node.value if isinstance(node, ast.Constant) else 0
    return not isinstance(value, (int, float)) or value >= 1
