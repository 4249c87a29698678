"""Values that are followed to where they are read: devices, memory formats, arguments of optimizers."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Optional

from migrator.findings.finding import Edit, Safety
from migrator.language import _
from migrator.matchers.argument_edits import without_arguments
from migrator.matchers.context import ONLY_BY_NAME, FileContext, Match, found, instead_of
from migrator.matchers.packs import Options, Rule
from migrator.matchers.whole_numbers import as_device, likely_int, surely_int
from migrator.names.conditions import has_npu_branch
from migrator.names.goes_to import Sink, behind_choices, kept_as, taken_by
from migrator.names.index import ModuleIndex
from migrator.names.made_from import made_from
from migrator.names.strings import replace_text
from migrator.names.tree import (
    argument_of,
    bare_name,
    called_name,
    elements,
    holder_of,
    is_off,
    last_name,
    only_target,
    string_value,
)
from migrator.names.what_is import stays_on_the_cpu
from migrator.project.offers import DEVICE_KEY, SCALES

if TYPE_CHECKING:
    from migrator.project.project import Project


_OF_OPTIONS = ("add_argument", "add_option", "option", "DEFINE_string", "DEFINE_enum", "Option", "Argument")
_SAME_VALUE = ("lower", "upper", "strip")
_OF_MEMBERS = ("name", "value")  # what members of an Enum have
_CASES: tuple[Callable[[str], str], ...] = (str, str.lower, str.upper)
_READS = ("getenv", "get", "pop", "setdefault", "getattr")


class MovedOptions(Options):
    """``values``: what is written instead of each string.

    ``arguments`` are the APIs that take it, each with the argument's keyword and, where it may stand without,
    its place: ``device_target 0``. ``names`` are options, variables, keys and members that hold it, and
    ``asked`` functions that give it for such a name. ``environment``: it is the name of a variable, and
    stands where the environment is read or set.
    """

    values: dict[str, str] = field(default_factory=dict)
    arguments: dict[str, str] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    environment: bool = False


def find_moved(context: FileContext, rule: Rule[MovedOptions]) -> Iterator[Match]:
    """The strings that a rule has another one for; none in code that has a case of its own for NPUs."""
    index = context.index
    by_case = {case: {case(old): case(new) for old, new in rule.options.values.items()} for case in _CASES}
    for node in index.strings:
        # As what it is compared with is written, by a call of ``lower()`` or ``upper()``.
        called = {*map(called_name, _operands(behind_choices(index, node).holder))}
        case = next((case for case in (str.lower, str.upper) if case.__name__ in called), str)
        new = by_case[case].get(string_value(node) or "")
        if new is not None and isinstance(node, ast.Constant):
            safety = _place(index, rule.options, node, new)
            if safety is not None and not has_npu_branch(index, node):
                edits = replace_text(index, node, str(node.value), new, 1)
                yield found(context, rule, node, api=str(node.value), edits=edits, safety=safety)


def _operands(node: ast.AST) -> list[ast.expr]:
    """What a comparison compares; nothing of anything else."""
    return [node.left, *node.comparators] if isinstance(node, ast.Compare) else []


def _place(index: ModuleIndex, options: MovedOptions, node: ast.Constant, new: str) -> Optional[Safety]:
    """``safe`` for such a value for sure, ``unsafe`` where its holder's name says so, else None."""
    sink = taken_by(index, node)
    if options.environment:
        return "unsafe" if _is_variable(index, sink) else None
    while sink.kind in ("choice", "element"):
        if new in map(string_value, elements(sink.holder)):
            return None  # it is a choice already
        sink = taken_by(index, sink.holder)
    holder, value = sink.holder, sink.value
    if isinstance(holder, ast.Call):
        return _in_call(index, options, holder, sink)
    others = [_value_of(each) for each in _operands(holder) if each is not value]
    for other in others:
        # A variable whose name says nothing may hold one.
        is_other = isinstance(other, ast.Name) and other.id not in options.names
        values = index.assigned(other) if isinstance(other, ast.Name) and is_other else [other]
        if values and all(_says(options, each) for each in values):
            return "unsafe"
    return "unsafe" if not others and kept_as(index, value) in options.names else None


def _in_call(index: ModuleIndex, options: MovedOptions, call: ast.Call, sink: Sink) -> Optional[Safety]:
    called, keyword = called_name(call), sink.name
    taken, _, place = options.arguments.get(index.qualified_name(call.func), "").partition(" ")
    if taken:
        return "safe" if (keyword == taken if keyword else place == str(sink.place)) else None
    if called in _OF_OPTIONS:
        # An option's name is device_target for --device-target.
        texts = (string_value(each) or "" for each in call.args if each is not sink.value)
        named = any(text.lstrip("-").replace("-", "_") in options.names for text in texts)
        says = named and keyword in ("default", "choices", "const", "")
    elif not keyword and called in _READS and sink.place > 0:
        says = _says(options, call)  # the value where there is none
    else:
        says = keyword in options.names
    return "unsafe" if says else None


def _value_of(node: ast.expr) -> ast.expr:
    """What has the value that an expression gives: ``x`` of ``x.value``, ``x.lower()``."""
    if isinstance(node, ast.Attribute) and node.attr in _OF_MEMBERS:
        return _value_of(node.value)
    holder = holder_of(node) if isinstance(node, ast.Call) and called_name(node) in _SAME_VALUE else None
    return node if holder is None else _value_of(holder)


def _says(options: MovedOptions, node: ast.expr) -> bool:
    """Whether an expression is such a value, by its name, or by what it asks for."""
    node = _value_of(node)
    if isinstance(node, ast.Subscript):
        return (string_value(node.slice) or "") in options.names
    if isinstance(node, ast.Call):
        if called_name(node) == "str" and node.args:
            return _says(options, node.args[0])
        asks = called_name(node) in (*options.asked, *_READS)
        return asks and any((string_value(each) or "").lower() in options.names for each in node.args)
    return last_name(node) in options.names


def _is_variable(index: ModuleIndex, sink: Sink) -> bool:
    """Whether a string names a variable where the environment is read or set."""
    holder, asked = sink.holder, list[Optional[ast.expr]]()
    if isinstance(holder, ast.Subscript) and sink.kind == "look-up":
        asked = [holder.value]
    elif isinstance(holder, ast.Call) and sink.place == 0:
        if index.qualified_name(holder.func) in ("os.getenv", "os.putenv"):
            return True
        asked = [holder_of(holder)] if called_name(holder) in _READS else []
    elif isinstance(holder, ast.Compare) and holder.left is sink.value:
        asked = [*holder.comparators]
    return any(each is not None and index.qualified_name(each) == "os.environ" for each in asked)


_KEYWORD = "memory_format"


class FormatOptions(Options):
    """``methods`` and ``functions`` raise for the format, which is taken away there.

    It is looked for in names, dictionaries and other functions, too; ``harmless`` are those that take one on
    any device, or are another rule's.
    """

    methods: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    harmless: tuple[str, ...] = ()


def find_formats(context: FileContext, rule: Rule[FormatOptions]) -> Iterator[Match]:
    """Where a format is given to a call of the rule, or goes where that is not seen."""
    index = context.index
    for ref, _name in context.uses_of(rule):
        sink = taken_by(index, index.chosen(ref))
        call = _call_with_format(sink)
        taker = call or index.parent(sink.value)
        name = index.qualified_name(taker.func) if isinstance(taker, ast.Call) else ""
        if call is not None and _is_about(index, rule, call):
            yield from _given(context, rule, ref, call, is_chosen=sink.value is not ref)
        elif (name or f".{called_name(taker)}") not in rule.options.harmless:
            yield from _handed_on(context, rule, ref, sink)


def _call_with_format(sink: Sink) -> Optional[ast.Call]:
    """The call that takes a value as its ``memory_format``."""
    is_format = sink.kind == "argument" and sink.name == _KEYWORD
    return sink.holder if is_format and isinstance(sink.holder, ast.Call) else None


def _given(
    context: FileContext, rule: Rule[FormatOptions], ref: ast.expr, call: ast.Call, is_chosen: bool
) -> Iterator[Match]:
    """A call of the rule that is given a format."""
    index = context.index
    name = index.qualified_name(call.func)
    if stays_on_the_cpu(index, call):
        return
    method = call.func.attr if isinstance(call.func, ast.Attribute) else name
    api = name or f".{method}"
    gone = [each for each in call.keywords if each.arg == _KEYWORD]
    only = len(call.args) + len(call.keywords) == 1
    edits = None if is_chosen or only else without_arguments(index, call, gone)
    if edits is None:
        edits = _other_format(index, ref, "contiguous_format" if name else "preserve_format")
    device = string_value(argument_of(call, "device", 0)) or ""
    certain = method in ("cuda", "npu") or device.startswith(("cuda", "npu"))
    yield found(context, rule, call, api=api, edits=edits, safety="safe" if certain else "")


def _handed_on(context: FileContext, rule: Rule[FormatOptions], ref: ast.expr, sink: Sink) -> Iterator[Match]:
    """A format that is kept, or given to something else than torch's methods."""
    index = context.index
    if sink.kind in ("compared", "element", "unused"):
        return  # it is compared, or listed
    target = only_target(sink.holder)
    # Where else a name goes does not matter: an NPU takes a contiguous format everywhere.
    uses = [*map(_call_with_format, (taken_by(index, use) for use in _uses_of(index, target)))]
    calls = [call for call in uses if call is not None]
    if calls and not any(_is_about(index, rule, call) for call in calls):
        return
    edits = _other_format(index, ref, "contiguous_format") if calls or _is_named(index, sink) else []
    message = "" if edits else _("this file does not show whether the format reaches an NPU")
    severity = "" if edits else "warning"
    api = "torch.channels_last"
    yield found(context, rule, ref, api=api, edits=edits, message=message, severity=severity)


def _uses_of(index: ModuleIndex, target: Optional[ast.expr]) -> Sequence[ast.expr]:
    """The uses of a name, or of an attribute of ``self`` in its class."""
    if isinstance(target, ast.Name):
        return index.uses_of(target)
    name = target.attr if isinstance(target, ast.Attribute) and bare_name(target.value) == "self" else ""
    owner = index.class_of(target) if target is not None and name else None
    members = (node for node in ast.walk(owner or ast.Pass()) if isinstance(node, ast.Attribute))
    return [each for each in members if each.attr == name and bare_name(each.value) == "self"]


def _is_named(index: ModuleIndex, sink: Sink) -> bool:
    """Whether a format is what a dictionary of arguments calls ``memory_format``."""
    if sink.name != _KEYWORD:
        return False
    if sink.kind == "value":
        return not isinstance(index.parent(sink.holder), (ast.List, ast.Tuple))
    by_key = sink.kind == "assigned" and isinstance(only_target(sink.holder), ast.Subscript)
    return by_key or (sink.kind == "argument" and called_name(sink.holder) == "dict")


def _is_about(index: ModuleIndex, rule: Rule[FormatOptions], call: ast.Call) -> bool:
    """Whether a rule is about a call."""
    name, options = index.qualified_name(call.func), rule.options
    if name or not isinstance(call.func, ast.Attribute):
        return name in options.functions
    return f".{call.func.attr}" in options.methods


def _other_format(index: ModuleIndex, ref: ast.expr, name: str) -> list[Edit]:
    """The edit that writes another format; none where it was imported by its name."""
    if not isinstance(ref, ast.Attribute):
        return []
    end = index.end(ref)
    return [Edit(end - len(ref.attr), end, name)]


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
        if not isinstance(holder, ast.Subscript) or holder.value is not ref:
            continue
        if isinstance(holder.slice, ast.Slice):
            values = map(_whose_text, (ref, *made_from(index, ref)))
            edits = [] if names.isdisjoint(values) else _of_slice(index, holder, holder.slice)
            if edits:
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
        # A beta may be a power, as ``0 ** ratio``. Those of a VAE may be 1 or more, of optimizers none.
        parts = [getattr(each, "left", each) for each in elements(pair)]
        values = [each.value for each in elements(pair) if isinstance(each, ast.Constant)]
        are_betas = all(isinstance(value, (int, float)) and value < 1 for value in values)
        whole = [each for each in parts if isinstance(each, ast.Constant) and each.value == 0]
        whole = [each for each in whole if type(each.value) is int]
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
