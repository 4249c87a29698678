"""Values that are followed to where they are read: devices, whole numbers, arguments of optimizers."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrator.findings.finding import Edit
from migrator.matchers.context import ONLY_BY_NAME, FileContext, Match, found, instead_of
from migrator.matchers.packs import Options, Rule
from migrator.matchers.whole_numbers import as_device, likely_int, surely_int
from migrator.names.goes_to import kept_as
from migrator.names.index import ModuleIndex
from migrator.names.made_from import made_from
from migrator.names.strings import replace_text
from migrator.names.tree import bare_name, called_name, elements, is_off, last_name, only_target, string_value
from migrator.project.offers import DEVICE_KEY, SCALES
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


def find_slices(context: FileContext, rule: Rule[SliceOptions]) -> Iterator[Match]:
    """Slices of device strings where the index is read, or the beginning is compared with ``"cuda"``."""
    index, names = context.index, context.project.offers.names(DEVICE_KEY).union(rule.options.names)
    for ref in index.refs:
        holder = index.parent(ref)
        if isinstance(holder, ast.Call) and called_name(holder) == "str":
            ref, holder = holder, index.parent(holder)
        if isinstance(holder, ast.Subscript) and isinstance(holder.slice, ast.Slice) and holder.value is ref:
            is_device = not names.isdisjoint(map(_whose_text, (ref, *made_from(index, ref))))
            if is_device and (edits := _of_slice(index, holder, holder.slice)):
                yield found(context, rule, holder, api=index.segment(holder), edits=edits)


def _whose_text(node: ast.expr) -> str:
    """The name of the device whose text an expression is: ``str(x.device)``, ``x.device.type``."""
    is_text = isinstance(node, ast.Call) and called_name(node) == "str" and node.args
    inner = node.args[0] if isinstance(node, ast.Call) and is_text else node
    return bare_name(inner.value if isinstance(inner, ast.Attribute) and inner.attr == "type" else inner)


def _of_slice(index: ModuleIndex, sliced: ast.Subscript, part: ast.Slice) -> list[Edit]:
    """The edits where a slice is made a number, or compared with ``"cuda"``; none for anything else."""
    parent = index.parent(sliced)
    if isinstance(parent, ast.Compare):
        operands = (parent.left, *parent.comparators)
        texts = [each for each in operands if isinstance(each, ast.Constant) and each.value in _TEXTS]
        edits = [edit for text in texts for edit in _shortened(index, part.upper, len(str(text.value)))]
        for text in texts if edits else ():
            edits += replace_text(index, text, "cuda", "npu", 1)
        return edits
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


class IntOptions(Options):
    """``methods``: those with a keyword ``device``. ``integers``: functions that give a whole number."""

    methods: tuple[str, ...] = ()
    integers: tuple[str, ...] = ()


def find_integers(context: FileContext, rule: Rule[IntOptions]) -> Iterator[Match]:
    """``x.to(rank)`` and ``device=rank`` become an f-string, which evaluates the expression once."""
    index = context.index
    if context.version.int_device_is_npu:
        return
    for call in index.calls:
        node = _integer_device(context.index, rule, call)
        if node is None:
            continue
        certainty = "" if surely_int(index, rule.options.integers, node) else ONLY_BY_NAME
        if not certainty or likely_int(index, node):
            edits = as_device(index, node)
            yield found(context, rule, node, api="int device", edits=edits, certainty=certainty)


def _integer_device(index: ModuleIndex, rule: Rule[IntOptions], call: ast.Call) -> ast.expr | None:
    name = index.qualified_name(call.func)
    method = f".{call.func.attr}" if isinstance(call.func, ast.Attribute) else ""
    if any(isinstance(a, ast.Starred) for a in call.args):
        return None
    for keyword in call.keywords:
        if keyword.arg == "device" and (name.startswith("torch.") or method in rule.options.methods):
            # The device functions of torch.cuda take an index on every version.
            return None if name.startswith(("torch.cuda.", "torch.npu.")) else keyword.value
    by_name = name in rule.match and len(call.args) == 1
    by_method = method in rule.match and not name.startswith("torch.")
    return call.args[0] if call.args and (by_name or by_method) else None


_NAME = "betas"


def find_fused(context: FileContext, rule: Rule) -> Iterator[Match]:
    """``fused=…`` of an optimizer, also where ``**`` hands it on, in a program with such a GradScaler.

    ``torch.npu.amp.GradScaler`` gives the optimizer itself as ``grad_scaler``, which no ``step`` of torch
    takes: a TypeError (torch_npu/npu/amp/grad_scaler.py, 1.11 to 2.13). ``torch.amp.GradScaler("npu")`` asks.
    """
    scales = (not row.name or context.version.tuple < (2, 3) for row in context.project.offers.of(SCALES))
    for call, name in context.calls_of(rule) if any(scales) else ():
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
        # A beta may be a power, as ``0 ** ratio``. Those of a VAE may be 1 or more, of optimizers none.
        parts = [getattr(each, "left", each) for each in elements(pair)]
        values = [each.value for each in elements(pair) if isinstance(each, ast.Constant)]
        are_betas = all(isinstance(value, (int, float)) and value < 1 for value in values)
        whole = [each for each in parts if isinstance(each, ast.Constant) and repr(each.value) == "0"]
        if whole and len(parts) == 2 and are_betas:
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
