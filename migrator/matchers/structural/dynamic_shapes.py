"""Shapes that depend on the data: each new one is prepared by the NPU anew."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from migrator.matchers.context import FileContext, Match, found
from migrator.matchers.packs import Rule
from migrator.names.index import ModuleIndex
from migrator.names.tree import FUNCTIONS, called_name
from migrator.names.values import TENSOR

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
_SHAPED = frozenset(
    "zeros ones empty full rand randn arange view reshape expand repeat new_zeros new_ones linspace".split()
)
_NO_TENSORS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.JoinedStr, ast.Constant)
_GIVES_NO_TENSOR = frozenset({"numpy", "tolist", "split", "keys"})
_TORCH_WORD = re.compile(r"\btorch\.|\bF\.|\bnn\.|\.(?:cuda|npu|detach|unsqueeze|squeeze|to)\(")
_OTHER_WORD = re.compile(r"\bnp\.|\bnumpy\.|\bpd\.|\bcv2\.")


def find_calls(context: FileContext, rule: Rule) -> Iterator[Match]:
    """Calls whose result has as many elements as the data say."""
    index = context.index
    for call in index.calls:
        name = index.qualified_name(call.func)
        method = f".{call.func.attr}" if isinstance(call.func, ast.Attribute) else ""
        if name and rule.fits(name):
            if _depends(call, name.rpartition(".")[2], 1):
                yield found(context, rule, call, api=name)
        elif not name and method in rule.match and isinstance(call.func, ast.Attribute):
            how = _tensor(context, call.func.value)
            how = how or ("certain" if call.func.attr in _TENSORS_ONLY else "")
            if how and _depends(call, call.func.attr, 0):
                yield found(context, rule, call, api=f"torch.Tensor{method}", certainty=_certainty(how))


def _certainty(how: str) -> str:
    return "likely: the names do not say for sure what they stand for" if how == "likely" else ""


def _depends(call: ast.Call, name: str, first: int) -> bool:
    keywords = {keyword.arg: keyword.value for keyword in call.keywords}
    if name == "where":
        return len(call.args) + len(keywords) == 1
    if name == "repeat_interleave":
        repeats = call.args[first] if len(call.args) > first else keywords.get("repeats")
        if "output_size" in keywords or isinstance(repeats, (ast.Constant, ast.BinOp, ast.Attribute)):
            return False
        # A tensor of repeats is called by what it counts, in the plural; a number is not.
        return bool(_COUNTS.search(getattr(repeats, "id", "")))
    return not (name == "nonzero" and "size" in keywords)


def _tensor(context: FileContext, node: ast.expr) -> str:
    """``certain``, ``likely`` or empty: whether an expression is a tensor."""
    index = context.index
    value = context.value(node)
    if value.kind == TENSOR:
        return "certain"
    if value.is_no_tensor:
        return ""
    root = node
    while isinstance(root, (ast.Attribute, ast.Subscript, ast.Call, ast.Compare, ast.BinOp, ast.UnaryOp)):
        root = next(child for child in ast.iter_child_nodes(root) if isinstance(child, ast.expr))
    if isinstance(root, ast.Name) and _comes_from_elsewhere(index, root):
        return ""
    function = index.function_of(node)
    text = index.segment(function) if function is not None else ""
    return "" if _OTHER_WORD.search(text) or not _TORCH_WORD.search(text) else "likely"


def _comes_from_elsewhere(index: ModuleIndex, node: ast.Name) -> bool:
    """Whether a name is another library, or one of its values is a list, a text, or made by one."""
    name = index.qualified_name(node)
    if name and not name.startswith(("torch", ".")):
        return True
    for binding in index.bindings(node):
        value = binding.value
        if isinstance(value, _NO_TENSORS) and getattr(value, "value", value) is not None:
            return True
        if isinstance(value, ast.Call):
            index.expand(binding.node)
            name = index.qualified_name(value.func)
            if name and not name.startswith(("torch", ".")):
                return True
            if isinstance(value.func, ast.Attribute) and value.func.attr in _GIVES_NO_TENSOR:
                return True
    return False


def find_masks(context: FileContext, rule: Rule) -> Iterator[Match]:
    """``x[mask]`` that is read: as many elements as the mask has true ones."""
    index = context.index
    lines = {index.line_of(match.start()) for match in _CONDITION.finditer(index.data)}
    if not lines:
        return
    for statement in index.statements:
        if isinstance(statement, ast.stmt) and not isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
            if any(statement.lineno <= line <= (statement.end_lineno or 0) for line in lines):
                index.expand(statement)
                yield from _masks_in(context, rule, statement)


def _masks_in(context: FileContext, rule: Rule, statement: ast.stmt) -> Iterator[Match]:
    index = context.index
    within = (ast.stmt, ast.ExceptHandler)  # a body is looked at by itself
    stack = [child for child in ast.iter_child_nodes(statement) if not isinstance(child, within)]
    while stack:
        node = stack.pop()
        stack += ast.iter_child_nodes(node)
        if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Load):
            continue
        how = _mask(index, node.slice) if index.parent(node) is not None else ""
        tensor = _tensor(context, node.value) if how else ""
        if tensor:
            certainty = _certainty("likely" if "likely" in (tensor, how) else "certain")
            yield found(context, rule, node, api=index.segment(node)[:60], certainty=certainty)
            return


def _mask(index: ModuleIndex, node: ast.AST, asked: tuple[str, ...] = ()) -> str:
    """``certain``, ``likely`` or empty: whether an index is a mask of true and false.

    ``asked`` are the names on the way here: ``keep = keep & more`` leads to itself.
    """
    if isinstance(node, ast.Compare):
        if any(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in node.ops):
            return ""
        return "" if isinstance(node.left, ast.Call) and called_name(node.left) == "len" else "certain"
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
    if isinstance(node, ast.Name):
        if node.id in asked:
            return ""
        # Not mask = mask.cuda().
        values = [value for value in index.assigned(node) if _root_name(value) != node.id]
        if not values:
            return "likely" if _MASK.search(node.id) else ""
        way = (*asked, node.id)
        answers = {_mask(index, value, way) for value in values if not isinstance(value, ast.Name)}
        return next((answer for answer in ("certain", "likely") if answer in answers), "")
    return "likely" if isinstance(node, ast.Attribute) and _MASK.search(node.attr) else ""


def _root_name(node: ast.AST) -> str:
    """The name on which an expression calls methods: x for ``x.cuda().bool()``."""
    while isinstance(node, (ast.Attribute, ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return getattr(node, "id", "")


def find_sizes(context: FileContext, rule: Rule) -> Iterator[Match]:
    """A size that is read out of a tensor with ``item()``."""
    for call in context.index.calls:
        if f".{called_name(call)}" not in rule.match or call.args or call.keywords:
            continue
        node: ast.AST = call
        parent = context.index.parent(node)
        while isinstance(parent, (ast.BinOp, ast.Tuple, ast.List)) or (
            isinstance(parent, ast.Call) and called_name(parent) in ("int", "max", "min")
        ):
            node, parent = parent, context.index.parent(parent)
        is_argument = isinstance(parent, ast.Call) and node in parent.args
        if isinstance(parent, ast.Slice) or (is_argument and called_name(parent) in _SHAPED):
            yield found(context, rule, call, api=f"torch.Tensor.{called_name(call)}")


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
        if element is not None and any(_is_length(node) for node in ast.walk(element)):
            yield found(context, rule, call, api=function.name)


def _is_length(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return called_name(node) in ("len", "size")
    return isinstance(node, ast.Attribute) and node.attr == "shape"


def find_random_sizes(context: FileContext, rule: Rule) -> Iterator[Match]:
    """A size that interpolate is given and that comes from a random number."""
    for call, _ in context.calls_of(rule):
        values = [k.value for k in call.keywords if k.arg in ("size", "scale_factor")] or call.args[1:2]
        if any(_is_random(context.index, value, 0) for value in values):
            yield found(context, rule, call, api=rule.match[0])


def _is_random(index: ModuleIndex, node: ast.expr, depth: int) -> bool:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call):
            if index.qualified_name(inner.func).startswith(("random.", "numpy.random.", "torch.rand")):
                return True
        elif isinstance(inner, ast.Name) and depth < 4:
            for binding in index.scope_of(node).bindings.get(inner.id, ()):
                if binding.kind == "assign" and binding.value and binding.node.lineno < node.lineno:
                    index.expand(binding.node)
                    if _is_random(index, binding.value, depth + 1):
                        return True
    return False
