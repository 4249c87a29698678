"""Names and parameters that the project's torch does not have: what is said of them, and written instead.

What to write is in the options of the rules.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from migrator.api_support import npu_names
from migrator.api_support.torch_names import of_version, short, spans, when
from migrator.findings.finding import Edit
from migrator.language import _
from migrator.matchers.context import FileContext, Match, found, instead_of
from migrator.matchers.dotted import fitting
from migrator.matchers.moved_imports import can_bind, import_form, move_names
from migrator.matchers.options import SAID
from migrator.matchers.packs import Options, Rule
from migrator.matchers.removal import without_arguments, without_statement
from migrator.matchers.structural.absent_module import Member, without_module
from migrator.matchers.structural.release_uses import Use, uses_of_absent
from migrator.names.device_vocabulary import is_cpu
from migrator.names.execution import is_conditional
from migrator.names.guards import is_guarded
from migrator.names.index import ModuleIndex
from migrator.names.tree import Import, attributes, bare_name, imported, root, string_value


@dataclass(frozen=True)
class Equivalent:
    """What to write in place of a name.

    ``name`` takes the same arguments but for ``drops``, keywords with their places (-1: by keyword only); a
    CUDA name stands for the NPU's, and a ``*`` at its end for what the one of the old name stands for.
    ``value`` is written for the name itself, and bound in place of an import. ``bare``: the name alone is
    written for a call. ``expression`` stands for a call; in it ``{torch}`` is the module and ``{source}`` the
    call. ``module``: the name is a module's. ``remove``: a program does the same without the statement.
    ``other_device``: nothing is said of uses under a condition.
    """

    name: str = ""
    value: str = ""
    drops: dict[str, int] = field(default_factory=dict)
    bare: bool = False
    expression: str = ""
    module: bool = False
    remove: bool = False
    other_device: bool = False
    fix: Literal["safe", "unsafe"] = "unsafe"
    advice: str = field(default="", metadata=SAID)


@dataclass(frozen=True)
class Dropped:
    """Whether an argument is left out, and whether that is safe.

    It always is with the values of ``usual``, as they are written: the callable does the same without.
    """

    fix: Literal["safe", "unsafe", "none"] = "none"
    usual: tuple[str, ...] = ()
    advice: str = field(default="", metadata=SAID)


@dataclass(frozen=True)
class ReleaseOptions(Options):
    """What a rule is about: names that came later, names that went earlier, or parameters.

    ``names`` and ``parameters`` say what to do with some. A parameter stands behind the name of what takes
    it, and a ``*`` is as in ``match``.
    """

    about: Literal["later", "earlier", "parameters"] = "later"
    names: dict[str, Equivalent] = field(default_factory=dict)
    parameters: dict[str, Dropped] = field(default_factory=dict)


@dataclass(frozen=True)
class LateOptions(Options):
    """``arguments``: keywords that the names of ``match`` do not take, or do not take yet.

    One is left out with a value of ``usual``, as it is written; for another constant ``instead`` is written.
    """

    arguments: tuple[str, ...] = field(default=(), metadata={"required": True})
    usual: tuple[str, ...] = ()
    instead: str = ""


def find_late(context: FileContext, rule: Rule[LateOptions]) -> Iterator[Match]:
    """Calls with such an argument: what they call, or what that hands it on to, raises TypeError."""
    index, options = context.index, rule.options
    for call, name in context.calls_of(rule):
        for keyword in call.keywords:
            word = keyword.arg or ""
            if word not in options.arguments or is_guarded(index, call, [word], ["TypeError"]):
                continue
            usual = index.segment(keyword.value) in options.usual
            edits = without_arguments(index, call, [keyword]) if usual else None
            if not usual and options.instead and _is_constant(keyword.value):
                edits = [instead_of(index, keyword, options.instead)]
            span, safety = index.span(keyword), "safe" if usual else ""
            yield found(context, rule, call, span=span, api=name, edits=edits or (), safety=safety)


def _is_constant(node: ast.expr) -> bool:
    """Whether a value is a string, or a member of an enumeration."""
    return string_value(node) is not None or (
        isinstance(node, ast.Attribute) and bare_name(node.value)[:1].isupper()
    )


def find(context: FileContext, rule: Rule[ReleaseOptions]) -> Iterator[Match]:
    """The uses that a rule is about."""
    moved: dict[Import, list[Use]] = {}
    every = uses_of_absent(context)
    uses = [
        use for use in every if _about(context, use) == rule.options.about and not _is_own(context, use.name)
    ]
    mended: set[ast.AST] = set()
    for use in uses:
        found_whole = _module(context, rule, use)
        if found_whole is not None:
            match, members = found_whole
            mended.update([use.node, *members])
            yield match
    for use in uses:
        if not mended.isdisjoint([use.node, *attributes(use.node)]):
            continue
        if use.parameter is not None:
            yield from _parameter(context, rule, use, use.parameter)
        elif isinstance(use.node, (ast.Import, ast.ImportFrom)) and _is_bound_anew(_equivalent(rule, use)):
            moved.setdefault(use.node, []).append(use)
        else:
            yield from _name(context, rule, use)
    for node, uses in moved.items():
        yield from _import(context, rule, node, uses)


def _is_own(context: FileContext, name: str) -> bool:
    """Whether a name is of a companion of torch whose sources these are; a folder ``torch`` is mostly not."""
    return not name.startswith("torch.") and context.project.owns(name, context.name)


def _about(context: FileContext, use: Use) -> str:
    if use.parameter is not None:
        return "parameters"
    return "later" if of_version(context.version.text).is_later(use.name) else "earlier"


def _message(context: FileContext, name: str) -> str:
    absence, release = of_version(context.version.text).absence(name), _release(context, name)
    return _("{name} is absent in {context}: {absence}", name=name, context=release, absence=absence)


def _release(context: FileContext, name: str) -> str:
    whose = _("the torchvision of ") if name.startswith("torchvision") else ""
    return f"{whose}torch {short(context.version.text)}"


def _equivalent(rule: Rule[ReleaseOptions], use: Use) -> Equivalent:
    every = rule.options.names
    pattern = fitting(tuple(every), (), use.written)
    known = every.get(pattern, _NOTHING)
    if known.name.endswith(".*"):
        return replace(known, name=known.name[:-1] + use.written[len(pattern) - 1 :])
    return known


def _is_bound_anew(known: Equivalent) -> bool:
    """Whether what an import binds can be bound to the equivalent."""
    return bool(known.name or known.value)


_NOTHING = Equivalent()


def _name(context: FileContext, rule: Rule[ReleaseOptions], use: Use) -> Iterator[Match]:
    """A name where it is used, with or without an equivalent; or an import of one without."""
    known, conditional = _equivalent(rule, use), is_conditional(context.index, use.node)
    if known.other_device and conditional:
        return
    edits, target = _instead(context, known, use.node) if isinstance(use.node, ast.expr) else (None, "")
    sentence = _("It can be removed.") if known.remove else ""
    sentence = _("Write {target}.", target=target) if target else sentence
    yield found(
        context,
        rule,
        use.node,
        api=use.name,
        edits=edits or (),
        message=_message(context, use.name),
        advice=f"{sentence} {known.advice}".strip() or rule.advice,
        severity="warning" if conditional or known.other_device else "",
        safety=known.fix,
        needs_npu=target.startswith("torch.npu."),
    )


def _target(context: FileContext, known: Equivalent) -> str:
    """The name that takes the place of an absent one; empty where this version has it not either."""
    if not known.name:
        return ""
    if known.name.startswith("torch.cuda."):
        npu = npu_names.look_up(known.name, context.version)
        return npu.npu if npu else ""
    if known.name.startswith("torch.") and not of_version(context.version.text).present(known.name):
        return ""
    return known.name


def _instead(context: FileContext, known: Equivalent, node: ast.expr) -> tuple[list[Edit] | None, str]:
    """The edits that write the equivalent of a name, and the equivalent."""
    index, call = context.index, context.index.call_of(node)
    base = root(node)
    torch = index.segment(base) if index.qualified_name(base) == "torch" else ""
    if known.remove:
        statement = index.parent(call) if call is not None else None
        return ([without_statement(index, statement)] if isinstance(statement, ast.Expr) else None), ""
    if known.value:
        return [instead_of(index, node, known.value)], known.value
    if known.expression:
        text = known.expression.format(torch=torch or "torch", source=index.segment(call or node))
        if call is None or not torch:
            return None, text
        if text.startswith("(") and isinstance(
            index.parent(call), (ast.If, ast.While, ast.Return, ast.Assign)
        ):
            text = text[1:-1]
        return [instead_of(index, call, text)], text
    target = _target(context, known)
    if not target:
        return None, ""
    beginning, dropped = index.qualified_name(base), _dropped(context, known, node)
    if dropped is None or not isinstance(node, (ast.Attribute, ast.Name)):
        return None, target
    if beginning and target.startswith(f"{beginning}."):
        return [Edit(index.end(base), index.end(node), target[len(beginning) :]), *dropped], target
    if import_form(target) != target:
        return [instead_of(index, node, import_form(target)), *dropped], target
    return None, target


def _dropped(context: FileContext, known: Equivalent, node: ast.expr) -> list[Edit] | None:
    """The edits that take out of a call what the equivalent does not take; None where that cannot be done."""
    index, call = context.index, context.index.call_of(node)
    if call is None:
        return None if known.drops else []
    if known.bare:
        return [Edit(index.end(node), index.end(call), "")]
    gone: list[ast.expr | ast.keyword] = [each for each in call.keywords if each.arg in known.drops]
    gone += [call.args[place] for place in known.drops.values() if 0 <= place < len(call.args)]
    if any(isinstance(each, ast.Starred) for each in call.args) or any(map(_is_for_cpu, gone)):
        return None
    return without_arguments(index, call, gone) if gone else []


def _is_for_cpu(argument: ast.expr | ast.keyword) -> bool:
    return is_cpu(argument.value if isinstance(argument, ast.keyword) else argument)


def _import(
    context: FileContext, rule: Rule[ReleaseOptions], node: Import, uses: list[Use]
) -> Iterator[Match]:
    """An import of names that have equivalents: these are imported, and bound to the same names."""
    index = context.index
    moved: dict[str, str] = {}
    values: dict[str, str] = {}
    gone: list[Use] = []
    for use in uses:
        alias = next(alias for alias, full in zip(node.names, imported(node)) if full == use.written)
        known = _equivalent(rule, use)
        target = _target(context, known)
        calls = _calls(index, node, alias) if known.drops or known.bare else []
        dropped = [(call, _dropped(context, known, call.func)) for call in calls]
        if known.value and can_bind(index, node):
            values[alias.name] = known.value
            gone.append(use)
            continue
        if not target or any(edits is None for _, edits in dropped):
            yield from _name(context, rule, use)
            continue
        moved[alias.name] = target
        gone.append(use)
        for call, edits in dropped:
            if edits:
                message = _(
                    "{target} takes no {drops}", target=target, drops=" and no ".join(known.drops) or "call"
                )
                yield found(context, rule, call, api=use.name, edits=edits, message=message)
    if gone:
        safe = all(_equivalent(rule, use).fix == "safe" for use in gone)
        yield found(
            context,
            rule,
            node,
            api=", ".join(use.written for use in gone),
            edits=[move_names(index, node, moved, values)],
            message="; ".join(dict.fromkeys(_message(context, use.name) for use in gone)),
            severity="warning" if is_conditional(index, node) else "",
            safety="safe" if safe else "unsafe",
        )


def _module(
    context: FileContext, rule: Rule[ReleaseOptions], use: Use
) -> tuple[Match, Sequence[ast.AST]] | None:
    """The import of a module that is gone, with all that is read of it; None where it cannot be taken out."""
    if not isinstance(use.node, (ast.Import, ast.ImportFrom)) or use.written != use.name:
        return None
    if _is_bound_anew(_equivalent(rule, use)):
        return None
    known = {
        name.rpartition(".")[2]: each
        for name, each in rule.options.names.items()
        if name.rpartition(".")[0] == use.name and not each.drops
    }
    whole = (
        without_module(context.index, use.node, use.name, lambda name: _member(context, known.get(name)))
        if known
        else None
    )
    if whole is None:
        return None
    match = found(
        context,
        rule,
        use.node,
        api=use.name,
        edits=whole.edits,
        message=_message(context, use.name),
        advice=_("Write {target}.", target=", ".join(whole.texts))
        if whole.texts
        else _("It can be removed."),
        severity="warning" if is_conditional(context.index, use.node) else "",
        safety="safe" if all(known[each.attr].fix == "safe" for each in whole.members) else "unsafe",
    )
    return match, whole.members


def _member(context: FileContext, known: Equivalent | None) -> Member | None:
    """What is written for a member of a module; None where it is not known, or another release's of torch."""
    if known is None or not (known.value or known.name):
        return None
    if known.value:
        return Member(known.value)
    target = _target(context, known)
    home, _dot, name = target.rpartition(".")
    if not target or target.startswith("torch"):
        return None
    if known.module:
        return Member(target, target)
    return Member(name) if home == "builtins" else Member(target, home)


def _calls(index: ModuleIndex, node: Import, alias: ast.alias) -> list[ast.Call]:
    """The calls of what an import binds."""
    uses = index.uses(alias.asname or alias.name, index.scope_of(node))
    return [call for use in uses if (call := index.call_of(use)) is not None]


def _parameter(
    context: FileContext, rule: Rule[ReleaseOptions], use: Use, parameter: ast.keyword
) -> Iterator[Match]:
    """An argument that the version does not take: it is left out where the rule says so."""
    index, word, call = context.index, str(parameter.arg), use.node
    every, name = rule.options.parameters, f"{use.name}.{word}"
    if fitting(rule.excluded, (), name):
        return
    known = every.get(fitting(tuple(every), (), name), Dropped())
    safety = "safe" if index.segment(parameter.value) in known.usual else known.fix
    assert isinstance(call, ast.Call)
    release = _release(context, use.name)
    yield found(
        context,
        rule,
        call,
        span=index.span(parameter),
        api=use.name,
        edits=(without_arguments(index, call, [parameter]) if safety != "none" else None) or (),
        message=_(
            "{name} takes no {word} in {context}: {when}",
            name=use.name,
            word=word,
            context=release,
            when=when(spans(use.name, word), context.version.tuple),
        ),
        advice=known.advice or rule.advice,
        severity="warning" if is_conditional(index, call) else "",
        safety=safety,
    )
