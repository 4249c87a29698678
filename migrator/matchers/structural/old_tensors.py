"""What old programs do with tensors that newer ones of torch refuse: ``loss.data[0]``, ``1 - mask``."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from migrator.findings.finding import Edit
from migrator.matchers.context import FileContext, Match, found
from migrator.matchers.packs import Options, Rule
from migrator.names.flow import candidates
from migrator.names.index import ModuleIndex
from migrator.names.tree import argument_of, bare_name, hands_on, holder_of

_MEANS = ("mean", "sum", "elementwise_mean")


def find_first_numbers(context: FileContext, rule: Rule) -> Iterator[Match]:
    """``loss.data[0]`` of one number: what a loss of torch gives, or what ``backward()`` is called of."""
    index = context.index
    if ".data[0]" not in index.text:
        return
    for ref in index.refs:
        taken = index.parent(ref)
        if not (
            isinstance(ref, ast.Attribute)
            and ref.attr == "data"
            and isinstance(taken, ast.Subscript)
            and taken.value is ref
            and isinstance(taken.ctx, ast.Load)
            and isinstance(taken.slice, ast.Constant)
            and taken.slice.value == 0
        ):
            continue
        if _is_loss(index, rule, ref.value) or _goes_back(index, ref.value):
            edit = Edit(index.end(ref.value), index.end(taken), ".item()")
            more = isinstance(index.parent(taken), ast.Attribute)  # a number has not what is asked for then
            yield found(context, rule, taken, api=index.segment(taken), edits=[] if more else [edit])


def _is_loss(index: ModuleIndex, rule: Rule, node: ast.expr) -> bool:
    """Whether a value surely is one number that a loss of torch gives: a function's, or that of a module."""
    if isinstance(node, ast.Name):
        values = index.only_assigned(node)
        return bool(values) and all(
            isinstance(each, ast.Call) and _is_loss(index, rule, each) for each in values
        )
    if not isinstance(node, ast.Call):
        return False
    if rule.fits(index.qualified_name(node.func)):
        return bare_name(node.func)[:1].islower() and _is_reduced(node)
    made = [*candidates(index, node.func)] if isinstance(node.func, (ast.Name, ast.Attribute)) else []
    return bool(made) and all(
        isinstance(each, ast.Call)
        and rule.fits(index.qualified_name(each.func))
        and bare_name(each.func)[:1].isupper()
        and _is_reduced(each)
        for each in made
    )


def _is_reduced(call: ast.Call) -> bool:
    """Whether a loss surely is a sum or a mean, as it is by default."""
    reduction = argument_of(call, "reduction")
    if hands_on(call) or argument_of(call, "reduce") is not None:
        return False
    return reduction is None or (isinstance(reduction, ast.Constant) and reduction.value in _MEANS)


def _goes_back(index: ModuleIndex, node: ast.expr) -> bool:
    """Whether the same function calls ``backward()`` of the value: that has one element then."""
    written, function = ast.unparse(node), index.function_of(node)
    return isinstance(node, (ast.Name, ast.Attribute)) and any(
        bare_name(call.func) == "backward"
        and not call.args
        and argument_of(call, "gradient") is None
        and index.function_of(call) is function
        and ast.unparse(holder) == written
        for call in index.calls
        if (holder := holder_of(call)) is not None
    )


@dataclass(frozen=True)
class InvertedOptions(Options):
    """``keeping``: methods of a tensor that give one of the same type."""

    keeping: tuple[str, ...] = ()


def find_inverted_masks(context: FileContext, rule: Rule[InvertedOptions]) -> Iterator[Match]:
    """``1 - mask``, where the mask surely is a comparison's: one of booleans."""
    index, keeping = context.index, rule.options.keeping
    for call in index.calls:
        if not _is_comparison(index, rule, call):
            continue
        whole = _kept(index, call, keeping)
        for read in index.reads_of(whole):
            if isinstance(read, ast.Name) and not _is_mask(index, rule, read):
                continue
            mask = _kept(index, read, keeping)
            around = index.parent(mask)
            if not (
                isinstance(around, ast.BinOp)
                and isinstance(around.op, ast.Sub)
                and around.right is mask
                and isinstance(around.left, ast.Constant)
                and around.left.value == 1
            ):
                continue
            edit = Edit(index.start(around.left), index.start(mask), "~")
            plain = index.data[index.end(around.left) : index.start(mask)].strip() == b"-"
            yield found(context, rule, around, api=index.segment(mask), edits=[edit] if plain else [])


def _is_comparison(index: ModuleIndex, rule: Rule, node: ast.expr) -> bool:
    """Whether a call compares tensors: by a function of torch, or by a method of that name."""
    if not isinstance(node, ast.Call):
        return False
    method = f".{node.func.attr}" if isinstance(node.func, ast.Attribute) else ""
    name = index.qualified_name(node.func)
    return rule.fits(name) or (not name and method in rule.match and len(node.args) == 1)


def _is_mask(index: ModuleIndex, rule: Rule[InvertedOptions], name: ast.Name) -> bool:
    """Whether everything that a name is given is a comparison."""
    values = index.only_assigned(name)
    return bool(values) and all(_is_comparison(index, rule, _begun(each, rule)) for each in values)


def _begun(node: ast.expr, rule: Rule[InvertedOptions]) -> ast.expr:
    """What methods that keep the type are called on: ``x.eq(0)`` of ``x.eq(0).unsqueeze(1).cuda()``."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr not in rule.options.keeping:
            break
        node = node.func.value
    return node


def _kept(index: ModuleIndex, node: ast.expr, keeping: tuple[str, ...]) -> ast.expr:
    """What methods that keep the type make of a value: ``x.eq(0).unsqueeze(1)`` of ``x.eq(0)``."""
    while True:
        around = index.parent(node)
        call = index.parent(around)
        if not (isinstance(around, ast.Attribute) and around.attr in keeping and isinstance(call, ast.Call)):
            return node
        if call.func is not around:
            return node
        node = call
