"""``memory_format=torch.channels_last``: an NPU has formats of its own, and refuses or ignores torch's."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Optional

from migrator.findings.finding import Edit
from migrator.language import _
from migrator.matchers.argument_edits import without_arguments
from migrator.matchers.context import FileContext, Match, found
from migrator.matchers.packs import Options, Rule
from migrator.names.goes_to import Sink, taken_by
from migrator.names.index import ModuleIndex
from migrator.names.tree import (
    argument_of,
    bare_name,
    called_name,
    holder_of,
    only_target,
    string_value,
)
from migrator.names.what_is import is_cpu_device, kept_on_the_cpu

_KEYWORD = "memory_format"


class FormatOptions(Options):
    """``methods`` and ``functions``: the calls that a rule is about; ``drops``: it takes the format away.

    Such a rule also looks at formats that go elsewhere first: into a name, a dictionary, another function.
    ``harmless`` are functions that take one on any device. ``questions`` are methods whose answer is another
    one on an NPU.
    """

    methods: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    harmless: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    drops: bool = False


def find(context: FileContext, rule: Rule[FormatOptions]) -> Iterator[Match]:
    """Where a format is given to a call of the rule, or goes where that is not seen."""
    index = context.index
    for ref in index.refs:
        if isinstance(getattr(ref, "ctx", None), ast.Load) and index.qualified_name(ref) in rule.match:
            sink = taken_by(index, index.chosen(ref))
            call = _call_with_format(sink)
            if call is not None and _is_of(index, rule, call):
                yield from _given(context, rule, ref, call, is_chosen=sink.value is not ref)
            elif rule.options.drops and not _is_harmless(index, rule, call or index.parent(sink.value)):
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
    is_function = name in rule.options.functions
    if _stays_on_the_cpu(index, call, is_function):
        return
    method = call.func.attr if isinstance(call.func, ast.Attribute) else name
    api = name if is_function else f".{method}"
    if not rule.options.drops:
        message, severity = "", ""
        if f".{method}" in rule.options.questions:
            about = {"api": api, "keyword": _KEYWORD}
            message = _("{api}({keyword}=torch.channels_last) is False for NPU tensors", **about)
            severity = "warning"
        yield found(context, rule, call, api=api, message=message, severity=severity)
        return
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
    uses = [*map(_call_with_format, (taken_by(index, use) for use in _uses(index, target)))]
    calls = [call for call in uses if call is not None]
    if calls and not any(_is_of(index, rule, call) for call in calls):
        return
    edits = _other_format(index, ref, "contiguous_format") if calls or _is_named(index, sink) else []
    message = "" if edits else _("this file does not show whether the format reaches an NPU")
    severity = "" if edits else "warning"
    api = "torch.channels_last"
    yield found(context, rule, ref, api=api, edits=edits, message=message, severity=severity)


def _is_harmless(index: ModuleIndex, rule: Rule[FormatOptions], call: Optional[ast.AST]) -> bool:
    """Whether a call takes a format on any device, or is another rule's."""
    if not isinstance(call, ast.Call):
        return False
    return (index.qualified_name(call.func) or f".{called_name(call)}") in rule.options.harmless


def _uses(index: ModuleIndex, target: Optional[ast.expr]) -> Sequence[ast.expr]:
    """The uses of a name, or of an attribute of ``self`` in its class."""
    if isinstance(target, ast.Name):
        return index.uses_of(target)
    owner = index.class_of(target) if target is not None else None
    if not isinstance(target, ast.Attribute) or bare_name(target.value) != "self" or owner is None:
        return []
    members = (node for node in ast.walk(owner) if isinstance(node, ast.Attribute))
    return [each for each in members if each.attr == target.attr and bare_name(each.value) == "self"]


def _is_named(index: ModuleIndex, sink: Sink) -> bool:
    """Whether a format is what a dictionary of arguments calls ``memory_format``."""
    if sink.name != _KEYWORD:
        return False
    if sink.kind == "value":
        return not isinstance(index.parent(sink.holder), (ast.List, ast.Tuple))
    by_key = sink.kind == "assigned" and isinstance(only_target(sink.holder), ast.Subscript)
    return by_key or (sink.kind == "argument" and called_name(sink.holder) == "dict")


def _is_of(index: ModuleIndex, rule: Rule[FormatOptions], call: ast.Call) -> bool:
    """Whether a rule is about a call."""
    name, options = index.qualified_name(call.func), rule.options
    if name or not isinstance(call.func, ast.Attribute):
        return name in options.functions
    return f".{call.func.attr}" in (*options.methods, *options.questions)


def _stays_on_the_cpu(index: ModuleIndex, call: ast.Call, is_function: bool) -> bool:
    device = argument_of(call, "device", None if is_function else 0)
    if device is not None and index.qualified_name(device).startswith("torch."):
        device = None  # a dtype
    if device is not None:
        return is_cpu_device(index, device)
    if is_function:
        if index.qualified_name(call.func).endswith("_like") and call.args:
            return kept_on_the_cpu(index, call.args[0], made=True)
        return not any(keyword.arg is None for keyword in call.keywords)
    holder = holder_of(call)
    if holder is None or kept_on_the_cpu(index, holder):
        return holder is not None
    return called_name(call) not in ("cuda", "npu") and kept_on_the_cpu(index, holder, made=True)


def _other_format(index: ModuleIndex, ref: ast.expr, name: str) -> list[Edit]:
    """The edit that writes another format; none where it was imported by its name."""
    if not isinstance(ref, ast.Attribute):
        return []
    end = index.end(ref)
    return [Edit(end - len(ref.attr), end, name)]
