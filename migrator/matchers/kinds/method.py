"""Kinds ``method`` and ``attribute``: members of tensors, modules and storages."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from migrator.findings.finding import Edit
from migrator.language import _
from migrator.matchers.context import FileContext, Match, found
from migrator.matchers.kinds.move import MethodOptions, moved_with_to
from migrator.matchers.kinds.torchscript import in_torchscript
from migrator.matchers.packs import Rule
from migrator.names.conditions import is_guarded
from migrator.names.index import ModuleIndex
from migrator.names.tree import attributes, bare_name, called_name, imported
from migrator.names.what_is import CLASS, FOREIGN, MODULE, TENSOR, Value, is_class_of_torch, options_like
from migrator.project.frameworks import TORCH

_KEYWORDS = frozenset({"device", "non_blocking", "memory_format"})


def find_methods(context: FileContext, rules: list[Rule[MethodOptions]]) -> Iterator[Match]:
    """Calls of ``x.member(...)``, and the method itself as a value (``torch.Tensor.member``)."""
    for node, rule in _members(context, rules):
        call = context.index.call_of(node)
        if call:
            # torch's cuda(device=None, non_blocking=False), or a method of the project about tensors.
            fits = len(call.args) <= 2 and all(k.arg is None or k.arg in _KEYWORDS for k in call.keywords)
            fits = fits or any(
                node.attr in facts.methods and context.project.related(facts)
                for facts in context.project.classes
            )
        else:
            fits = _method_as_value(context, node)
        if fits:
            yield from _judged(context, rule, node)
        elif not call and _handed_on(context, node):
            yield _left(
                context, rule, node, _("it is unknown whether this is the method of a tensor or a module")
            )


def find_attributes(context: FileContext, rules: list[Rule]) -> Iterator[Match]:
    """Reads of ``x.member``; those that become nothing else are reported, where nobody asks first."""
    for node, rule in _members(context, rules):
        if not isinstance(node.ctx, ast.Load) or (node.attr != "is_cuda" and _is_own(node)):
            continue
        if not rule.replace:
            made = node.value.func if isinstance(node.value, ast.Call) else node.value
            name = context.index.qualified_name(made)
            # Another library has it, which is imported, or gives it by one of its calls.
            is_others = context.value(node.value).kind == FOREIGN or bool(
                name and not name.startswith("torch.")
            )
            if not (is_others and TORCH in rule.framework) and not is_guarded(
                context.index, node, {node.attr}
            ):
                yield found(context, rule, node, api=f".{node.attr}")
        elif node.attr == "is_cuda" or _is_handle(context, node):
            yield from _judged(context, rule, node)
        elif not any(
            each.attr == node.attr and isinstance(each.ctx, ast.Store)
            for ref in context.index.refs
            for each in attributes(ref)
        ):  # the file itself stores nothing under the name
            yield _left(context, rule, node, _("it is unknown whether it belongs to torch"))


def _left(context: FileContext, rule: Rule, node: ast.Attribute, why: str, where: str = "it is") -> Match:
    """What is said of a member that is left, and where it has to change."""
    api, message = f".{node.attr}", _(".{attr} is left unchanged: {why}", attr=node.attr, why=why)
    advice = _("Where {where}, write {replace}.", where=where, replace=rule.replace)
    return found(context, rule, node, api=api, message=message, advice=advice, severity="warning")


def _is_handle(context: FileContext, node: ast.Attribute) -> bool:
    """Whether ``.cuda_stream`` is read of a stream, by its name or by what it was made with."""
    kind, holder, index = node.attr.rpartition("_")[2], node.value, context.index
    made = index.assigned(holder) if isinstance(holder, ast.Name) else []
    made = index.stored_as(holder) if isinstance(holder, ast.Attribute) else made
    names = (called_name(each) or bare_name(each) for each in (holder, *made))
    return any(kind in name.lower() for name in names)


def _members(context: FileContext, rules: list[Rule]) -> Iterator[tuple[ast.Attribute, Rule]]:
    members = {name.lstrip("."): rule for rule in reversed(rules) for name in rule.match}
    for ref in context.index.refs:
        yield from ((node, members[node.attr]) for node in attributes(ref) if node.attr in members)


def _is_own(node: ast.Attribute) -> bool:
    """Whether it is a member of the object itself."""
    return isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")


def _method_as_value(context: FileContext, node: ast.Attribute) -> bool:
    if is_class_of_torch(context.index.qualified_name(node.value)):
        return True
    around = context.index.parent(node)
    if isinstance(around, ast.IfExp):
        branches = (around.body, around.orelse)
        if any(isinstance(other, ast.Attribute) and other.attr == "cpu" for other in branches):
            return True
    value = context.value(node.value)
    if value.kind in (TENSOR, MODULE):
        return True
    facts = context.project.named(value.name)
    return facts is not None and node.attr in facts.methods and context.project.related(facts)


def _handed_on(context: FileContext, node: ast.Attribute) -> bool:
    """Whether the member of something unknown is used as a function.

    ``map(x.cuda, …)`` hands it to a call, ``move = x.cuda`` to a name that is called; elsewhere
    (``{"move": model.cuda}``) the name of what has it has to say that it is a tensor or a module.
    """
    around = context.index.parent(node)
    if not isinstance(node.ctx, ast.Load):
        return False
    if isinstance(around, ast.Call):
        likely = node in around.args
    elif isinstance(around, ast.Assign) and any(
        context.index.call_of(use)
        for target in around.targets
        if isinstance(target, ast.Name)
        for use in context.index.uses_of(target)
    ):
        likely = True
    else:
        holds = (ast.Assign, ast.Dict, ast.List, ast.Tuple, ast.Return, ast.keyword)
        likely = isinstance(around, holds) and bool(_MOVABLE.search(bare_name(node.value)))
    if not likely:
        return False
    name = context.index.qualified_name(node.value)
    if _is_own(node):  # a setting, as often as not
        return False
    if name in _MODULES or options_like(node.value) or context.project.stores(node.attr):
        return False
    return context.value(node.value).kind not in (FOREIGN, CLASS)


# Names of what has the method.
_MOVABLE = re.compile(r"(?:^|_)(?:tensor|module|model|net|network|layer|encoder|decoder)_?\d*$")


_MODULES = frozenset({"torch", "torch.version", "torch.backends", "torch._C"})


def _judged(context: FileContext, rule: Rule, node: ast.Attribute) -> Iterator[Match]:
    index, project = context.index, context.project
    holder = node.value
    if index.qualified_name(holder) in _MODULES:
        return
    value = context.value(holder)
    is_torch = value.kind in (TENSOR, MODULE)
    is_called = index.call_of(node) is not None
    is_setting = not is_torch and options_like(holder)
    if is_setting and not is_called:
        return  # args.cuda, get_config().cuda
    if value.kind == FOREIGN and not (is_called and _may_be_tensor(context, holder, value)):
        return
    facts = None if is_torch else project.named(value.name)
    if facts is not None and (
        node.attr in facts.stored or (node.attr in facts.methods and not project.related(facts))
    ):
        return
    owner_class = index.class_of(node) if _is_super(holder) else None
    facts = project.named(owner_class.name) if owner_class is not None else None
    if facts is not None and not project.related(facts):
        return
    owner_of_another = "" if is_torch else _another_owner(context, node, value)
    if owner_of_another:
        yield _left(context, rule, node, owner_of_another, _("the object is a tensor or a module"))
        return
    scripted = in_torchscript(context, node)
    if scripted and node.attr == "is_cuda":  # the form that TorchScript compiles
        edits = compared_type(index, node, '"npu"', isinstance(index.parent(node), HOLDS_COMPARISON))
        yield found(context, rule, node, api=".is_cuda", edits=edits)
        return
    doubtful = not is_torch and (
        (is_setting and not isinstance(holder, ast.Call))  # Model.from_config(config).cuda()
        or value.kind == FOREIGN
        or project.defines_elsewhere(node.attr)
        or (not is_called and project.stores(node.attr))
    )
    options = rule.options
    move = None
    if isinstance(options, MethodOptions):
        move = moved_with_to(context, options, node, value, scripted)
    if move is not None:
        safety = "unsafe" if doubtful else move.safety
        yield found(
            context, rule, node, api=f".{node.attr}", edits=move.edits, message=move.message, safety=safety
        )
        return
    end = index.end(node)
    edit = Edit(end - len(node.attr.encode("utf-8")), end, rule.replace.lstrip("."))
    yield found(context, rule, node, api=f".{node.attr}", edits=[edit], safety="unsafe" if doubtful else "")


def _may_be_tensor(context: FileContext, holder: ast.expr, value: Value) -> bool:
    """Whether what a module of an unknown library, or of the project, holds may be a tensor or a module."""
    modules = (
        name for node in context.index.imports if isinstance(node, ast.Import) for name in imported(node)
    )
    return isinstance(holder, ast.Attribute) and not value.is_no_tensor and value.name not in modules


def _another_owner(context: FileContext, node: ast.Attribute, value: Value) -> str:
    """Why a member may be the project's own, or a library's; empty where nothing speaks for that."""
    project = context.project
    if value.kind == FOREIGN and not project.owns(value.name, context.name):
        return _("it is unknown what {name} is", name=value.name)
    if _is_super(node.value) or _inside_moved_method(context, node):
        return ""  # definitions move together with what they call
    other = project.unrelated_method(node.attr, context.index.text, context.name)
    if other is not None:
        about = {"name": other.name, "file": other.file}
        return _("it may belong to the class {name} in {file}, which is unrelated to torch", **about)
    stored = next((facts for facts in project.classes if node.attr in facts.stored), None)
    if stored is not None and stored.file == context.name and not context.index.call_of(node):
        return _("the class {name} stores its own value under that name", name=stored.name)
    return ""


def _inside_moved_method(context: FileContext, node: ast.Attribute) -> bool:
    function, owner = context.index.function_of(node), context.index.class_of(node)
    if function is None or owner is None or function.name not in ("cuda", "is_cuda", "npu", "is_npu"):
        return False
    facts = context.project.named(owner.name)
    return facts is None or context.project.related(facts)


# What may hold a comparison without parentheses around it.
HOLDS_COMPARISON = (ast.If, ast.While, ast.Assert, ast.Return, ast.Assign, ast.BoolOp, ast.IfExp, ast.keyword)


def compared_type(index: ModuleIndex, node: ast.Attribute, value: str, bare: bool) -> list[Edit]:
    """The edits that compare the type of a device with ``value``, in parentheses if not ``bare``."""
    start, end = index.span(node)
    text = f"device.type == {value}"
    comparison = Edit(end - len("is_cuda"), end, text if bare else f"{text})")
    return [comparison] if bare else [Edit(start, start, "("), comparison]


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"
