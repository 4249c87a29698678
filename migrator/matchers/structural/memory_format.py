"""``memory_format=torch.channels_last``: an NPU has formats of its own, and refuses or ignores torch's."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Optional

from migrator.findings.finding import Edit
from migrator.language import _
from migrator.matchers.context import FileContext, Match, found
from migrator.matchers.packs import Options, Rule
from migrator.matchers.removal import without_arguments
from migrator.names.index import ModuleIndex
from migrator.names.placement import is_cpu_device, kept_on_the_cpu, made_on_the_cpu
from migrator.names.tree import (
    argument_of,
    bare_name,
    called_name,
    holder_of,
    kept_as,
    only_target,
    string_value,
)

_KEYWORD = "memory_format"


@dataclass(frozen=True)
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
        if not isinstance(ref.ctx, ast.Load) or index.qualified_name(ref) not in rule.match:  # type: ignore[attr-defined]
            continue
        keyword, choice = _keyword(index, ref)
        call = index.parent(keyword) if keyword is not None else None
        if keyword is not None and isinstance(call, ast.Call) and _is_of(index, rule, call):
            yield from _given(context, rule, ref, call, keyword, choice)
        elif rule.options.drops and not _is_harmless(index, rule, call):
            yield from _handed_on(context, rule, ref)


def _given(
    context: FileContext,
    rule: Rule[FormatOptions],
    ref: ast.expr,
    call: ast.Call,
    keyword: ast.keyword,
    choice: bool,
) -> Iterator[Match]:
    """A call of the rule that is given a format."""
    index = context.index
    name = index.qualified_name(call.func)
    if _stays_on_the_cpu(index, call, is_function=name in rule.options.functions):
        return
    method = call.func.attr if isinstance(call.func, ast.Attribute) else name
    api = name if name in rule.options.functions else f".{method}"
    if not rule.options.drops:
        message, severity = "", ""
        if f".{method}" in rule.options.questions:
            about = {"api": api, "keyword": _KEYWORD}
            message = _("{api}({keyword}=torch.channels_last) is False for NPU tensors", **about)
            severity = "warning"
        yield found(context, rule, call, api=api, message=message, severity=severity)
        return
    only = len(call.args) + len(call.keywords) == 1
    edits = None if choice or only else without_arguments(index, call, [keyword])
    if edits is None:
        edits = _other_format(index, ref, "contiguous_format" if name else "preserve_format")
    device = string_value(argument_of(call, "device", 0)) or ""
    certain = method in ("cuda", "npu") or device.startswith(("cuda", "npu"))
    yield found(context, rule, call, api=api, edits=edits, safety="safe" if certain else "")


def _handed_on(context: FileContext, rule: Rule[FormatOptions], ref: ast.expr) -> Iterator[Match]:
    """A format that is kept, or given to something else than torch's methods."""
    index = context.index
    child = index.chosen(ref)
    parent = index.parent(child)
    if isinstance(parent, (ast.Compare, ast.Tuple, ast.List, ast.Set, ast.Expr)):
        return  # it is compared, or listed
    if _is_harmless(index, rule, parent):
        return
    uses = _formats_in(index, child, parent)
    if uses is not None and not any(_is_of(index, rule, call) for call in uses):
        return
    edits = _other_format(index, ref, "contiguous_format") if uses or _is_named(index, child, parent) else []
    message = "" if edits else _("this file does not show whether the format reaches an NPU")
    severity = "" if edits else "warning"
    yield found(
        context, rule, ref, api="torch.channels_last", edits=edits, message=message, severity=severity
    )


def _is_harmless(index: ModuleIndex, rule: Rule[FormatOptions], call: Optional[ast.AST]) -> bool:
    """Whether a call takes a format on any device, or is another rule's."""
    if not isinstance(call, ast.Call):
        return False
    name = index.qualified_name(call.func) or f".{called_name(call)}"
    return name in rule.options.harmless


def _formats_in(index: ModuleIndex, value: ast.AST, parent: Optional[ast.AST]) -> Optional[list[ast.Call]]:
    """The calls that a name, or an attribute of ``self``, is given to as their format; None for none.

    Where else it goes does not matter: an NPU takes a contiguous format everywhere.
    """
    target = only_target(parent)
    if target is None or value is target:
        return None
    calls = []
    for use in _uses(index, target):
        keyword = index.parent(use)
        call = index.parent(keyword) if isinstance(keyword, ast.keyword) else None
        if isinstance(keyword, ast.keyword) and keyword.arg == _KEYWORD and isinstance(call, ast.Call):
            calls.append(call)
    return calls or None


def _uses(index: ModuleIndex, target: ast.expr) -> Sequence[ast.expr]:
    """The uses of a name, or of an attribute of ``self`` in its class."""
    if isinstance(target, ast.Name):
        return index.uses_of(target)
    owner = index.class_of(target)
    if not isinstance(target, ast.Attribute) or bare_name(target.value) != "self" or owner is None:
        return []
    members = (node for node in ast.walk(owner) if isinstance(node, ast.Attribute))
    return [each for each in members if each.attr == target.attr and bare_name(each.value) == "self"]


def _is_named(index: ModuleIndex, value: ast.AST, parent: Optional[ast.AST]) -> bool:
    """Whether a format is what a dictionary of arguments calls ``memory_format``."""
    if isinstance(parent, ast.keyword):
        return parent.arg == _KEYWORD and called_name(index.parent(parent)) == "dict"
    if isinstance(parent, ast.Dict):
        if isinstance(index.parent(parent), (ast.List, ast.Tuple)):
            return False
        return kept_as(parent, value) == _KEYWORD
    target = only_target(parent)
    return isinstance(target, ast.Subscript) and string_value(target.slice) == _KEYWORD


def _keyword(index: ModuleIndex, ref: ast.expr) -> tuple[Optional[ast.keyword], bool]:
    """The argument ``memory_format`` that a format is given as, and whether only in one case of a choice."""
    child = index.chosen(ref)
    parent = index.parent(child)
    is_format = isinstance(parent, ast.keyword) and parent.arg == _KEYWORD
    return (parent if is_format else None), child is not ref  # type: ignore[return-value]


def _is_of(index: ModuleIndex, rule: Rule[FormatOptions], call: ast.Call) -> bool:
    """Whether a rule is about a call."""
    name = index.qualified_name(call.func)
    if name:
        return name in rule.options.functions
    return isinstance(call.func, ast.Attribute) and f".{call.func.attr}" in (
        *rule.options.methods,
        *rule.options.questions,
    )


def _stays_on_the_cpu(index: ModuleIndex, call: ast.Call, is_function: bool) -> bool:
    device = argument_of(call, "device", None if is_function else 0)
    if device is not None and index.qualified_name(device).startswith("torch."):
        device = None  # a dtype
    if is_cpu_device(index, device):
        return True
    if is_function:
        first = call.args[0] if call.args else None
        if index.qualified_name(call.func).endswith("_like") and first is not None:
            return device is None and made_on_the_cpu(index, first)
        return device is None and not any(k.arg is None for k in call.keywords)
    holder = holder_of(call)
    if holder is None or kept_on_the_cpu(index, holder):
        return device is None and holder is not None
    return device is None and called_name(call) not in ("cuda", "npu") and made_on_the_cpu(index, holder)


def _other_format(index: ModuleIndex, ref: ast.expr, name: str) -> list[Edit]:
    """The edit that writes another format; none where it was imported by its name."""
    if not isinstance(ref, ast.Attribute):
        return []
    end = index.end(ref)
    return [Edit(end - len(ref.attr), end, name)]
