"""Forms that an old torch took and newer ones refuse: they raise when they are reached."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from migrator.findings.finding import Edit
from migrator.matchers.context import FileContext, Match, found, put_around
from migrator.matchers.packs import Options, Rule
from migrator.names.index import ModuleIndex
from migrator.names.tree import argument_of, hands_on, last_name

_BYTE_TYPES = ("torch.uint8", "torch.ByteTensor")


def find_next(context: FileContext, rule: Rule) -> Iterator[Match]:
    """``iterator.next()`` on what ``iter(…)`` gave: an iterator has ``__next__``, which ``next(…)`` calls."""
    index = context.index
    for call in index.calls:
        function = call.func
        if not isinstance(function, ast.Attribute) or f".{function.attr}" not in rule.match:
            continue
        if call.args or call.keywords:
            continue
        if not _is_iterator(index, function.value):
            continue
        start, end = index.start(call), index.end(function.value)
        edits = [Edit(start, start, "next("), Edit(end, index.end(call), ")")]
        yield found(context, rule, call, api=".next", edits=edits)


def _is_iterator(index: ModuleIndex, node: ast.expr) -> bool:
    """Whether a value surely comes from ``iter``: where it stands, or wherever its name is assigned."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "iter" and len(node.args) == 1
    if isinstance(node, ast.Name):
        values = index.only_assigned(node)
        return bool(values) and all(
            isinstance(each, ast.Call) and _is_iterator(index, each) for each in values
        )
    if isinstance(node, ast.Attribute):
        written = re.escape(index.segment(node))
        values_written = re.findall(rf"(?<![\w.]){written}[ \t]*=(?!=)[ \t]*([^\n]*)", index.text)
        given = [each for each in values_written if each.strip() != "None"]
        return bool(given) and all(each.startswith("iter(") for each in given)
    return False


@dataclass(frozen=True)
class MaskOptions(Options):
    """``methods``: those of a tensor whose first argument is a mask."""

    methods: tuple[str, ...] = ()


def find_byte_masks(context: FileContext, rule: Rule[MaskOptions]) -> Iterator[Match]:
    """Masks of bytes where torch takes those of booleans only."""
    index = context.index
    for call in index.calls:
        method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if method not in rule.options.methods or hands_on(call):
            continue
        is_function = index.qualified_name(call.func).startswith("torch.")
        mask = argument_of(call, "mask", int(is_function))
        if mask is None:
            continue
        if isinstance(mask, ast.Call) and _is_byte_call(index, mask):
            converts = index.end(mask.func) - len(last_name(mask.func))
            edits = [Edit(converts, index.end(mask), "bool()")]
        elif isinstance(mask, ast.Name) and _is_byte_name(index, mask):
            edits = [Edit(index.end(mask), index.end(mask), ".bool()")]
        else:
            continue
        api = f".{method}"
        yield found(context, rule, call, api=api, edits=edits)


def _is_byte_call(index: ModuleIndex, node: ast.expr) -> bool:
    """Whether an expression is ``x.byte()``, or another conversion to it."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    if node.func.attr == "byte":
        return not node.args and not node.keywords
    given = node.args[0] if len(node.args) == 1 and not node.keywords else None
    is_given = given is not None and index.qualified_name(given) in _BYTE_TYPES
    return is_given and node.func.attr in ("to", "type")


def _is_byte_name(index: ModuleIndex, name: ast.Name) -> bool:
    values = index.only_assigned(name)
    return bool(values) and all(_is_byte_call(index, each) or _makes_bytes(index, each) for each in values)


def _makes_bytes(index: ModuleIndex, node: ast.expr) -> bool:
    """Whether an expression makes a tensor of bytes."""
    if not isinstance(node, ast.Call):
        return False
    dtype = argument_of(node, "dtype")
    name = index.qualified_name(node.func)
    return name == "torch.ByteTensor" or (
        name.startswith("torch.") and dtype is not None and index.qualified_name(dtype) == "torch.uint8"
    )


def find_real_spectra(context: FileContext, rule: Rule) -> Iterator[Match]:
    """Spectra of real numbers, with the parts side by side, where torch takes complex ones."""
    index = context.index
    for call, api in context.calls_of(rule):
        spectrum = argument_of(call, "input", 0)
        if spectrum is None or not _is_real(index, spectrum):
            continue
        base = index.segment(call.func).rpartition(".")[0]
        edits = put_around(index, spectrum, f"{base}.view_as_complex(", ".contiguous())")
        yield found(context, rule, call, api=api, edits=edits if base else ())


def _is_real(index: ModuleIndex, node: ast.expr) -> bool:
    """Whether a spectrum is surely one of real numbers."""
    if isinstance(node, ast.Name):
        values = index.only_assigned(node)
        return bool(values) and all(isinstance(each, ast.Call) and _is_real(index, each) for each in values)
    if not isinstance(node, ast.Call):
        return False
    name = index.qualified_name(node.func)
    if name == "torch.stft":
        given = argument_of(node, "return_complex", 9)
        return given is None or (isinstance(given, ast.Constant) and given.value is False)
    dim = argument_of(node, "dim", 1)
    return name == "torch.stack" and dim is not None and ast.unparse(dim) == "-1"


def find_legacy_functions(context: FileContext, rule: Rule) -> Iterator[Match]:
    """Classes of autograd functions whose ``forward`` is no static method, where one is made and called."""
    index = context.index
    for owner in index.classes:
        bases = [index.qualified_name(base) for base in owner.bases]
        name = next((each for each in bases if each in rule.match), "")
        forward = next((item for item in owner.body if getattr(item, "name", "") == "forward"), None)
        if not name or not isinstance(forward, ast.FunctionDef) or forward.decorator_list:
            continue
        start = index.start(forward)
        span = (start, start + len("def forward"))
        yield found(context, rule, forward, api=name, span=span)
