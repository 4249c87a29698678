"""What makes an NPU wait while it trains: in every step of a loop, and for shapes that depend on the data."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import islice
from typing import Union

from migrator.language import _
from migrator.matchers.context import FileContext, Match, found
from migrator.matchers.packs import Options, Rule, pattern_fits
from migrator.names.index import ModuleIndex
from migrator.names.made_from import loops
from migrator.names.tree import (
    FUNCTIONS,
    LOOPS,
    Function,
    bare_name,
    called_name,
    chain,
    children,
    holder_of,
    last_name,
)
from migrator.names.what_is import TENSOR

_TEXTS = frozenset({"print", "format", "info", "debug", "set_postfix", "set_description", "write"})
_NUMBERS = frozenset({"float", "int", "bool", "isnan", "isfinite", "isinf"})
_NO_VALUES = (ast.Is, ast.IsNot, ast.In, ast.NotIn)  # which need no values of a tensor
_FOREIGN = frozenset({"numpy", "cv2", "pandas", "PIL", "random", "math"})
# What stands below such a condition is not done in every step.
_NOW_AND_THEN = re.compile(
    r"log|print|verbos|debug|eval|valid|test|save|rank|master|main_process|last|display|summar|plot|wandb|tensorboard"
    r"|writer|visual|freq|interval|every|nan|finite|profil|metric|report|checkpoint|progress|pbar",
    re.IGNORECASE,
)
_OPTIMIZER = re.compile(r"optim|^opt|^solver|scaler", re.IGNORECASE)
# Functions that compute gradients to measure or to check something.
_NO_TRAINING = re.compile(r"_*(?:test|check|bench|profil|measur|backward$|step$|__call__$)", re.IGNORECASE)
Region = Union[ast.For, ast.AsyncFor, ast.While, Function]


class StepOptions(Options):
    """Which calls of what ``match`` names make the NPU wait.

    A ``.method`` is called without arguments, of anything that is no other library's; with ``of_batch`` it is
    one of what the loop goes over. ``without`` is a keyword with which a call is fine. ``values``: also a
    loss that is printed, put into a text, or decides a condition.
    """

    of_batch: bool = False
    without: str = ""
    values: bool = False


def find_in_steps(context: FileContext, rule: Rule[StepOptions]) -> Iterator[Match]:
    """One finding for each block of statements, with the lines."""
    index = context.index
    regions = _training_regions(index)
    blocks: dict[tuple[int, int], list[ast.expr]] = {}
    for node in _places(context, rule, regions) if regions else ():
        region = _every_step(index, node, regions)
        if region is not None:
            block = id(region), id(index.parent(index.statement_of(node)))
            blocks.setdefault(block, []).append(node)
    for nodes in blocks.values():
        first = min(nodes, key=index.start)
        lines = sorted({node.lineno for node in nodes})
        more = _(" (lines {str})", str=", ".join(map(str, lines))) if len(lines) > 1 else ""
        api = bare_name(first)
        if isinstance(first, ast.Call):
            api = index.qualified_name(first.func) or f".{called_name(first)}()"
        yield found(context, rule, first, api=api, message=rule.message.replace("{api}", api) + more)


def find_settings(context: FileContext, rule: Rule) -> Iterator[Match]:
    """The first training loop of a program: a file that is run, not imported, and steps an optimizer."""
    index = context.index
    regions = _training_regions(index) if "__main__" in index.text and ".step(" in index.text else []
    if regions:
        first = min(regions, key=index.start)
        span = (index.start(first), index.line_span(first.lineno, first.lineno)[1])
        yield found(context, rule, first, api=rule.match[0], span=span)


def _places(context: FileContext, rule: Rule[StepOptions], regions: list[Region]) -> Iterator[ast.expr]:
    index, options = context.index, rule.options
    for call in index.calls:
        name = index.qualified_name(call.func)
        if options.without in {keyword.arg for keyword in call.keywords}:
            continue
        if any(pattern_fits(pattern, name) for pattern in rule.match):
            yield call
        elif not name and isinstance(call.func, ast.Attribute) and f".{call.func.attr}" in rule.match:
            every = [*chain(call.func.value)]
            every += index.assigned(every[-1]) if isinstance(every[-1], ast.Name) else []
            names = (index.qualified_name(each.func) for each in every if isinstance(each, ast.Call))
            # A value of another library, such as an array of NumPy, is on the host.
            is_ours = not call.args and _FOREIGN.isdisjoint(each.split(".")[0] for each in names)
            if _is_of_batch(index, call, regions) if options.of_batch else is_ours:
                yield call
    for region in regions if options.values else ():
        yield from _values(index, region)


def _is_of_batch(index: ModuleIndex, call: ast.Call, regions: list[Region]) -> bool:
    """Whether what is moved is what a loop over a loader gave: its target, or a part of that."""
    holder = holder_of(call)
    node = [*chain(holder)][-1] if holder is not None else None
    if not isinstance(node, ast.Name):
        return False
    values = [getattr(b.node, "value", None) for b in index.bindings(node) if b.kind == "assign"]
    roots = [value.value if isinstance(value, ast.Subscript) else value for value in values]
    names = {node.id, *(root.id for root in roots if isinstance(root, ast.Name))}
    loops = (each for each in regions if isinstance(each, ast.For))
    around = (loop for loop in loops if loop.lineno <= call.lineno <= (loop.end_lineno or 0))
    targets = (part for loop in around for part in ast.walk(loop.target))
    return any(isinstance(part, ast.Name) and part.id in names for part in targets)


def _values(index: ModuleIndex, region: Region) -> Iterator[ast.expr]:
    """Where the value of a loss is needed on the host: of what ``backward()`` is called on, or is scaled."""
    inside = (call for call in index.calls if region.lineno <= call.lineno <= (region.end_lineno or 0))
    values = [holder_of(call) for call in inside if called_name(call) == "backward"]
    given = [each.args[0] for each in values if isinstance(each, ast.Call) and each.args]
    scaled = [each for each in given if called_name(index.parent(each)) == "scale"]
    for name in {each.id for each in (*values, *scaled) if isinstance(each, ast.Name)}:
        for use in index.uses(name, index.scope_of(region.body[0])):
            parent = index.parent(use)
            is_needed = isinstance(parent, ast.JoinedStr)
            if isinstance(parent, ast.Call) and use in parent.args:
                called = called_name(parent)
                is_number = called in _NUMBERS and not index.qualified_name(parent.func).startswith("torch.")
                is_needed = called in _TEXTS or is_number
            elif isinstance(parent, ast.Compare) and isinstance(index.parent(parent), ast.If):
                is_needed = not any(isinstance(op, _NO_VALUES) for op in parent.ops)
            if is_needed:
                yield use


# -- where a program trains: the loops and functions that run once a step -----


def _training_regions(index: ModuleIndex) -> list[Region]:
    """The innermost loops, or functions without one, that call ``backward()`` or step an optimizer."""
    regions: list[Region] = []
    for call in index.calls:
        name, function = called_name(call), index.function_of(call)
        if name == "backward" or (name == "step" and _OPTIMIZER.search(last_name(holder_of(call)))):
            if function is None or not _NO_TRAINING.match(function.name):
                around = index.above(index.statement_of(call))
                regions += islice((up for up in around if isinstance(up, (*LOOPS, *FUNCTIONS))), 1)
    steps = (each for each in index.functions if each.name == "training_step")
    regions += (each for each in steps if index.class_of(each) is not None)
    # The larger one of two is enough: its steps are those of the smaller one as well.
    return [each for each in dict.fromkeys(regions) if {*regions}.isdisjoint(index.above(each))]


def _every_step(index: ModuleIndex, node: ast.AST, regions: list[Region]) -> Region | None:
    """The region in whose every step a node is reached; None where it is reached now and then, or never."""
    statement = index.statement_of(node)
    if statement in regions:
        return None  # the head of the loop
    for child, up in index.way_up(statement):
        if isinstance(up, ast.If):
            counts = any(isinstance(node, ast.Mod) for node in ast.walk(up.test))
            if counts or _NOW_AND_THEN.search(index.segment(up.test)):
                return None
        for region in (each for each in regions if each is up):
            return None if child in getattr(region, "orelse", ()) else region
        if isinstance(up, (*FUNCTIONS, ast.ClassDef, ast.ExceptHandler)):
            return None
    return None


# A condition inside brackets, by its text: the statement is looked at then.
_INSIDE = rb"(?:[^\[\]\n]|\[[^\[\]\n]*\]){0,200}"  # other brackets may be in it: mask[i] == 0
_CONDITION = re.compile(rb"\[" + _INSIDE + rb"(?:[<>]|==|!=|~|\bmask|_mask\b)" + _INSIDE + rb"\]")
_MASK = re.compile(r"(?:^|_)mask$|^(?:is|has)_[a-z]+$", re.IGNORECASE)
_COUNTS = re.compile(r"(?:repeats|lengths?|lens|counts|durations?|sizes)$")
_TENSORS_ONLY = frozenset({"masked_select", "unique_consecutive"})
_MAKES_MASK = frozenset(
    "isnan isinf isfinite eq ne gt lt ge le logical_and logical_or logical_not logical_xor bool isin".split()
)
# Methods that give a mask again when they are called on one.
_KEEPS_MASK = frozenset("squeeze unsqueeze view reshape flatten clone detach to cpu cuda npu".split())
_LIKELY = "likely: the names do not say for sure what they stand for"
_NO_TENSORS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.JoinedStr, ast.Constant)
_GIVES_NO_TENSOR = frozenset({"numpy", "tolist", "split", "keys"})
_TORCH_WORD = re.compile(r"\btorch\.|\bF\.|\bnn\.|\.(?:cuda|npu|detach|unsqueeze|squeeze|to)\(")
_OTHER_WORD = re.compile(r"\bnp\.|\bnumpy\.|\bpd\.|\bcv2\.")


def find_calls(context: FileContext, rule: Rule) -> Iterator[Match]:
    """Calls whose result has as many elements as the data say."""
    for call in context.index.calls:
        name, func = context.index.qualified_name(call.func), call.func
        if name and context.fits(rule, name):
            if not context.is_on_cpu(*call.args[:1]) and _depends(call, name.rpartition(".")[2], 1):
                yield found(context, rule, call, api=name)
        elif not name and isinstance(func, ast.Attribute) and f".{func.attr}" in rule.match:
            how = _tensor(context, func.value) or ("certain" if func.attr in _TENSORS_ONLY else "")
            if how and _depends(call, func.attr, 0):
                certainty = _LIKELY if how == "likely" else ""
                yield found(context, rule, call, api=f"torch.Tensor.{func.attr}", certainty=certainty)


def _depends(call: ast.Call, name: str, first: int) -> bool:
    keywords = {keyword.arg: keyword.value for keyword in call.keywords}
    if name == "where":
        return len(call.args) + len(keywords) == 1
    if name == "repeat_interleave":
        repeats = call.args[first] if len(call.args) > first else keywords.get("repeats")
        # A tensor of repeats is called by what it counts, in the plural; a number is not.
        return "output_size" not in keywords and bool(_COUNTS.search(getattr(repeats, "id", "")))
    return not (name == "nonzero" and "size" in keywords)


def _tensor(context: FileContext, node: ast.expr) -> str:
    """``certain``, ``likely`` or empty: whether an expression is a tensor, and not surely on the CPU."""
    index, value = context.index, context.value(node)
    is_other = value.is_no_tensor or context.is_on_cpu(node)
    if value.kind == TENSOR or is_other:
        return "" if is_other else "certain"
    root: ast.AST = node
    while isinstance(root, (ast.Attribute, ast.Subscript, ast.Call, ast.Compare, ast.BinOp, ast.UnaryOp)):
        root = next(child for child in children(root) if isinstance(child, ast.expr))
    elsewhere = isinstance(root, ast.Name) and _comes_from_elsewhere(index, root)
    function = index.function_of(node)
    text = index.segment(function) if function is not None and not elsewhere else ""
    return "" if _OTHER_WORD.search(text) or not _TORCH_WORD.search(text) else "likely"


def _comes_from_elsewhere(index: ModuleIndex, node: ast.Name) -> bool:
    """Whether a name is another library, or one of its values is a list, a text, or made by one."""
    names = [index.qualified_name(node)]
    for binding in index.bindings(node):
        value = binding.value
        if isinstance(value, _NO_TENSORS) and getattr(value, "value", value) is not None:
            return True
        if isinstance(value, ast.Call):
            index.expand(binding.node)
            names.append(index.qualified_name(value.func))
            if isinstance(value.func, ast.Attribute) and value.func.attr in _GIVES_NO_TENSOR:
                return True
    return any(name and not name.startswith(("torch", ".")) for name in names)


def find_masks(context: FileContext, rule: Rule) -> Iterator[Match]:
    """``x[mask]`` that is read: as many elements as the mask has true ones; one for each statement."""
    index = context.index
    lines = {index.line_of(match.start()) for match in _CONDITION.finditer(index.data)}
    for statement in index.statements if lines else ():
        if isinstance(statement, ast.stmt) and not isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
            if any(statement.lineno <= line <= (statement.end_lineno or 0) for line in lines):
                index.expand(statement)
                yield from islice(_masks_in(context, rule, statement), 1)


def _masks_in(context: FileContext, rule: Rule, statement: ast.stmt) -> Iterator[Match]:
    index = context.index
    within = (ast.stmt, ast.ExceptHandler)  # a body is looked at by itself
    stack = [child for child in children(statement) if not isinstance(child, within)]
    while stack:
        node = stack.pop()
        stack += children(node)
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            how = _mask(index, node.slice) if index.parent(node) is not None else ""
            tensor = _tensor(context, node.value) if how else ""
            if tensor:
                certainty = _LIKELY if "likely" in (tensor, how) else ""
                yield found(context, rule, node, api=index.segment(node)[:60], certainty=certainty)


def _mask(index: ModuleIndex, node: ast.AST, asked: tuple[str, ...] = ()) -> str:
    """``certain``, ``likely`` or empty: whether an index is a mask of true and false.

    ``asked`` are the names on the way here: ``keep = keep & more`` leads to itself.
    """
    if isinstance(node, ast.Compare):
        no_mask = any(isinstance(op, _NO_VALUES) for op in node.ops)
        return "" if no_mask or called_name(node.left) == "len" else "certain"
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
        return _mask(index, node.operand, asked) or "likely"
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr)):
        return _mask(index, node.left, asked) or _mask(index, node.right, asked)
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in _KEEPS_MASK:
            return _mask(index, node.func.value, asked)
        return "certain" if called_name(node) in _MAKES_MASK else ""
    if isinstance(node, ast.Subscript):  # a row of one: mask[i]
        return _mask(index, node.value, asked)
    if isinstance(node, ast.Name) and node.id not in asked:
        # Not mask = mask.cuda().
        values = [value for value in index.assigned(node) if bare_name([*chain(value)][-1]) != node.id]
        if values:
            way = (*asked, node.id)
            # "certain" comes before "likely", and that before "".
            answers = [_mask(index, value, way) for value in values if not isinstance(value, ast.Name)]
            return min(filter(None, answers), default="")
        # A loop over masks gives masks; ``for i_mask in kept`` gives numbers.
        over = (index.segment(loop.iter).lower() for loop in loops(index, node))
        return "likely" if _MASK.search(node.id) and all("mask" in each for each in over) else ""
    return "likely" if isinstance(node, ast.Attribute) and _MASK.search(node.attr) else ""
