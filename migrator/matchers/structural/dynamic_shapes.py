"""Shapes that depend on the data: each new one is prepared by the NPU anew."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import islice

from migrator.matchers.context import FileContext, Match, found
from migrator.matchers.packs import Rule
from migrator.names.index import ModuleIndex
from migrator.names.tree import FUNCTIONS, bare_name, called_name, chain, children
from migrator.names.what_is import TENSOR

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
        if name and rule.fits(name):
            if _depends(call, name.rpartition(".")[2], 1):
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
    """``certain``, ``likely`` or empty: whether an expression is a tensor."""
    index, value = context.index, context.value(node)
    if value.kind == TENSOR or value.is_no_tensor:
        return "certain" if value.kind == TENSOR else ""
    root: ast.AST = node
    while isinstance(root, (ast.Attribute, ast.Subscript, ast.Call, ast.Compare, ast.BinOp, ast.UnaryOp)):
        root = next(child for child in children(root) if isinstance(child, ast.expr))
    if isinstance(root, ast.Name) and _comes_from_elsewhere(index, root):
        return ""
    function = index.function_of(node)
    text = index.segment(function) if function is not None else ""
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
        no_mask = any(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in node.ops)
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
        return "likely" if _MASK.search(node.id) else ""
    return "likely" if isinstance(node, ast.Attribute) and _MASK.search(node.attr) else ""


def find_batches(context: FileContext, rule: Rule) -> Iterator[Match]:
    """The greatest length of a batch's samples, where a function puts them together."""
    for call in context.index.calls:
        if called_name(call) not in rule.match or not call.args:
            continue
        function = context.index.function_of(call)
        if function is None or not re.search(r"collat", function.name):
            continue
        lengths = call.args[0]
        element = getattr(lengths, "elt", None)
        if element is None and isinstance(lengths, ast.Name):
            values = context.index.assigned(lengths)
            element = next((v.elt for v in values if isinstance(v, (ast.ListComp, ast.GeneratorExp))), None)
        parts = [*ast.walk(element)] if element is not None else []
        if any(
            called_name(each) in ("len", "size") or getattr(each, "attr", "") == "shape" for each in parts
        ):
            yield found(context, rule, call, api=function.name)
