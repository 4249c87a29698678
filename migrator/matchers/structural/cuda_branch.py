"""Questions for CUDA or the CPU that lead an NPU into what was written for CUDA alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import field

from migrator.findings.finding import Edit
from migrator.matchers.context import FileContext, Match, found
from migrator.matchers.options import EXPRESSION
from migrator.matchers.packs import Options, Rule
from migrator.names.conditions import (
    IMPORT_ERRORS,
    Choice,
    avoids_operators,
    choices,
    decided,
    guards_cuda_build,
    has_npu_branch,
    is_caught,
    operator_uses,
)
from migrator.names.index import ModuleIndex
from migrator.names.strings import replace_text
from migrator.names.tree import (
    FUNCTIONS,
    String,
    bare_name,
    called_name,
    imported,
    is_cpu,
    is_off,
    last_name,
    string_value,
    walk,
)
from migrator.names.what_is import options_like

_DEVICE = re.compile(r"(?:^|_)(?:type|device|dev)$")
_ASKS = re.compile(r"_?(?:is|has|have|can|check|supports?)_")
_LOOKS_CLOSER = re.compile(r"capability|(?:^|_)(?:major|sm_?\d*)(?:_|$)|compute_cap|get_device_name")

_OTHER = {ast.Eq: "!=", ast.NotEq: "=="}


class BranchOptions(Options):
    """``only_cuda`` is a regular expression for names of what has no kernels for an NPU."""

    only_cuda: str = field(default="(?!)", metadata=EXPRESSION)


def find(context: FileContext, rule: Rule[BranchOptions]) -> Iterator[Match]:
    """Questions for CUDA that become questions for an NPU, where a yes starts something of CUDA's own."""
    index, only_cuda = context.index, re.compile(rule.options.only_cuda, re.IGNORECASE)
    reported: set[ast.AST | None] = set()
    for question in [*_questions(index)] if only_cuda.search(index.text) else ():
        test: ast.expr = index.call_of(question) or question  # the condition that the question is a part of
        while isinstance(around := index.parent(test), (ast.BoolOp, ast.UnaryOp, ast.Compare)):
            test = around
        name = _triton_beside(test) or _started(index, question, only_cuda)
        if not name or around in reported or _LOOKS_CLOSER.search(index.segment(test)):
            continue
        kept = has_npu_branch(index, question) or guards_cuda_build(index, question)
        if not kept and not _is_asked_for(index, test, name):
            reported.add(around)
            yield found(context, rule, question, api=name)


def _questions(index: ModuleIndex) -> Iterator[ast.expr]:
    """``x.is_cuda``, ``torch.cuda.is_available()``, and the text of ``device.type == "cuda"``."""
    for ref in index.refs:
        if isinstance(ref, ast.Attribute) and isinstance(ref.ctx, ast.Load):
            asks = ref.attr == "is_cuda" and not options_like(ref.value)
            if asks or index.qualified_name(ref) == "torch.cuda.is_available":
                yield ref
    for string in index.strings:
        compared = index.parent(string)
        if isinstance(compared, ast.Compare) and string_value(string) == "cuda" and len(compared.ops) == 1:
            device = compared.left if compared.left is not string else compared.comparators[0]
            if type(compared.ops[0]) in _OTHER and _DEVICE.search(bare_name(device)):
                yield string


def _triton_beside(test: ast.expr) -> str:
    """What a condition asks of Triton beside a card: ``HAS_TRITON and x.is_cuda``."""
    beside = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else []
    names = [bare_name(each) or called_name(each) for each in beside]
    return next((name for name in names if "triton" in name.lower()), "")


def _started(index: ModuleIndex, question: ast.expr, only_cuda: re.Pattern[str]) -> str:
    """What of CUDA's own a yes starts; empty for nothing."""
    skipped = (each for choice in choices(index, question) for each in choice.skipped)
    # Another condition asks for more.
    names = [name for each in skipped if not isinstance(each, ast.If) for name in _names_in(index, each)]
    holder, if_no = decided(index, question)
    if isinstance(holder, ast.Assign) and not if_no:
        names += map(last_name, holder.targets)
    elif isinstance(holder, ast.Return) and not if_no:
        names.append(getattr(index.function_of(holder), "name", ""))
    return next(filter(only_cuda.search, names), "")


def _names_in(index: ModuleIndex, node: ast.AST) -> Iterator[str]:
    """The names of what a statement calls, imports and switches on; torch's own have rules of their own."""
    for inner in walk(node) if not isinstance(node, (*FUNCTIONS, ast.ClassDef)) else ():
        if isinstance(inner, ast.Call):
            # Triton's kernel[grid](x), too.
            called = inner.func.value if isinstance(inner.func, ast.Subscript) else inner.func
            if not index.qualified_name(called).startswith("torch.") and not _ASKS.match(bare_name(called)):
                yield bare_name(called)
            yield from (each.arg or "" for each in inner.keywords if not _is_off(each.value))
        elif isinstance(inner, (ast.Import, ast.ImportFrom)):
            named = next(iter(imported(inner)), "")
            if not named.startswith("torch.") and not is_caught(index, inner, IMPORT_ERRORS):
                yield named
        elif (text := string_value(inner)) is not None:
            yield text if text.isidentifier() and "flash" not in text else ""
        elif isinstance(inner, ast.Assign) and not _is_off(inner.value):
            if not _LOOKS_CLOSER.search(index.segment(inner.value)):
                yield from map(last_name, inner.targets)


def _is_off(value: ast.expr) -> bool:
    return isinstance(value, ast.Name) or is_off(value) or bool(_ASKS.match(called_name(value)))


def _is_asked_for(index: ModuleIndex, test: ast.expr, name: str) -> bool:
    """Whether the condition asks for the library, too, which an NPU's machine has not: ``HAS_XFORMERS``."""
    # For Ascend there is a Triton.
    words = re.split(r"[\W_]+", name.lower()) if "triton" not in name.lower() else []
    return any(len(word) > 3 and word in index.segment(test).lower() for word in words)


def find_ways_of_the_cpu(context: FileContext, rule: Rule) -> Iterator[Match]:
    """``if x.device.type == "cpu"``, where the rest goes to CUDA operators: an NPU takes the CPU's way."""
    from migrator.matchers.structural.cuda_operators import find_uses  # few files with questions need it

    index = context.index
    asked = [node for node in index.strings if is_cpu(node) and _compares_device(index, node)]
    uses = [item.node for item in find_uses(context, rule)] if asked else []
    operators = operator_uses(index, uses) if uses else set()
    for node in asked if operators else ():
        # What is not asked for goes to CUDA operators, as an NPU does at a question for the CPU.
        other = [Choice(taken, skipped) for skipped, taken in choices(index, node)]
        if avoids_operators(other, operators):
            compare = index.parent(node)
            edits = _for_all_but_cuda(index, compare, node) if isinstance(compare, ast.Compare) else []
            where = compare or node
            yield found(context, rule, where, api=index.segment(where), edits=edits)


def _compares_device(index: ModuleIndex, node: String) -> bool:
    """``x.device.type == "cpu"``, ``str(x.device) != "cpu"``."""
    compare = index.parent(node)
    if not isinstance(compare, ast.Compare) or len(compare.ops) != 1 or compare.comparators[0] is not node:
        return False
    device = compare.left
    if isinstance(device, ast.Call) and called_name(device) == "str" and device.args:
        device = device.args[0]
    if isinstance(device, ast.Attribute) and device.attr == "type":
        device = device.value
    return type(compare.ops[0]) in _OTHER and bare_name(device) in ("device", "get_device")


def _for_all_but_cuda(index: ModuleIndex, compare: ast.Compare, node: String) -> list[Edit]:
    """The edits that make it a question for CUDA, which an NPU answers as the CPU does."""
    start, end = index.end(compare.left), index.start(node)
    between = index.data[start:end]
    written = between.strip()
    if written not in (b"==", b"!="):
        return []
    start += between.index(written)
    operator = Edit(start, start + len(written), _OTHER[type(compare.ops[0])])
    return [operator, *replace_text(index, node, "cpu", "cuda", 1)]
