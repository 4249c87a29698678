"""``.cuda()`` and ``.is_cuda`` of tensors and modules, on every device."""

from __future__ import annotations

import ast
from typing import Optional

from migrator.core.keep_cuda.module import NAME, PLACE, QUESTION
from migrator.findings.finding import Edit
from migrator.matchers.context import FileContext, put_around
from migrator.matchers.kinds.method import HOLDS_COMPARISON, compared_type
from migrator.matchers.kinds.move import called_to
from migrator.names.tree import argument_of, hands_on
from migrator.names.values import is_class_of_torch


def moved(context: FileContext, node: ast.Attribute) -> Optional[list[Edit]]:
    """``x.cuda(1)`` as ``x.to(…)``; None where the method is no call, or a class's."""
    index = context.index
    call = index.call_of(node)
    if call is None or node.attr != "cuda" or hands_on(call) or _is_class(context, node.value):
        return None
    if _may_be_another(context, node):
        start, end = index.span(node.value)
        opening = index.data.index(b"(", index.end(node)) + 1
        return [
            Edit(start, start, f"{NAME}.move("),
            Edit(end, opening, ", " if call.args or call.keywords else ""),
        ]
    device = argument_of(call, "device", 0)
    given = [] if device is None else put_around(index, device, f"{NAME}.at(", ")")
    return called_to(index, node, call, PLACE, given)


def _is_class(context: FileContext, node: ast.expr) -> bool:
    """Whether a method is a class's, which takes the value: ``torch.Tensor.cuda(x)``."""
    name = context.index.qualified_name(node)
    return isinstance(context.index.definition(node), ast.ClassDef) or is_class_of_torch(name)


def _may_be_another(context: FileContext, node: ast.Attribute) -> bool:
    """Whether a value may have a method of the program's own, or be a storage, of which ``to`` is another."""
    if any(node.attr in facts.methods for facts in context.project.classes):
        return True
    holder = node.value
    lambdas = (up for up in context.index.above(node) if isinstance(up, ast.Lambda))
    names = {argument.arg for each in lambdas for argument in each.args.args}
    return isinstance(holder, ast.Name) and holder.id in names


def device_type(context: FileContext, node: ast.Attribute) -> Optional[list[Edit]]:
    """``x.is_cuda`` as a question for the type of its device; None where a class has an answer of its own."""
    index = context.index
    if any(node.attr in facts.methods for facts in context.project.classes):
        return None
    parent = index.parent(node)
    is_argument = isinstance(parent, ast.Call) and node in parent.args
    return compared_type(index, node, QUESTION, isinstance(parent, HOLDS_COMPARISON) or is_argument)
