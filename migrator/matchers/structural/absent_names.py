"""Names and parameters missing in the project's torch, torch_npu or a library, and their replacements.

Of a library for CUDA whose names torch has (apex) a name moves with all its uses in a file, or not at all:
where one of them gives what torch's does not take, or the program has another way, the name is reported.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Literal

from migrator.api_support import npu_names, tables
from migrator.api_support.npu_names import absence, instead, spelled
from migrator.api_support.torch_names import of_version
from migrator.findings.finding import Edit
from migrator.language import N_, _
from migrator.light import Frozen
from migrator.matchers.argument_edits import Arguments, without_arguments, without_statement
from migrator.matchers.context import FileContext, Match, found, instead_of
from migrator.matchers.kinds.library import every_import
from migrator.matchers.npu_import import import_form, move_names, torch_module, without_names
from migrator.matchers.options import SAID
from migrator.matchers.packs import Options, Rule, fitting
from migrator.matchers.query.uses import is_replaced
from migrator.matchers.structural.absent_uses import Use, uses_of_absent, uses_of_npus
from migrator.names.conditions import (
    IMPORT_ERRORS,
    asks_for_type,
    catching,
    is_asked_first,
    is_caught,
    is_conditional,
)
from migrator.names.index import ModuleIndex
from migrator.names.tree import Import, attributes, imported, root


class Equivalent(Arguments):
    """What to write in place of a name.

    ``name`` is what takes the arguments; a CUDA name stands for the NPU's, and a ``*`` at its end for what
    the one of the old name stands for. ``value`` is written for the name itself, and bound in place of an
    import; one of several lines is only bound. ``bare``: the name alone is written for a call.
    ``expression`` stands for a call; in it ``{torch}`` is the module and ``{source}`` the call. ``module``:
    the name is a module's. ``remove``: a program does the same without the statement. ``other_device``:
    uses under a condition are not reported. ``since`` is the first torch for which a name is deprecated.
    ``as_value``: it may be handed on to what calls it, as the defaults are the same.
    """

    name: str = ""
    value: str = ""
    bare: bool = False
    expression: str = ""
    module: bool = False
    remove: bool = False
    other_device: bool = False
    as_value: bool = False
    since: str = ""
    fix: Literal["safe", "unsafe"] = "unsafe"
    advice: str = field(default="", metadata=SAID)

    @property
    def is_bound(self) -> bool:
        """Whether what an import binds can be bound to it."""
        return bool(self.name or self.value)


class Dropped(Frozen):
    """Whether an argument is left out, and whether that is safe.

    It always is with the values of ``usual``, as they are written: the callable does the same without.
    """

    fix: Literal["safe", "unsafe", "none"] = "none"
    usual: tuple[str, ...] = ()
    advice: str = field(default="", metadata=SAID)


class AbsentOptions(Options):
    """What a rule is about: names that come ``later``, went ``earlier``, or that are ``unknown``; parameters.

    ``deprecated`` are the names that torch_npu's lists call so, and those of ``names``. ``names`` and
    ``parameters`` say what to do with some. A parameter stands behind the name of what takes it, and a ``*``
    is as in ``match``.
    """

    about: Literal["later", "earlier", "unknown", "deprecated", "parameters"] = "later"
    names: dict[str, Equivalent] = field(default_factory=dict)
    parameters: dict[str, Dropped] = field(default_factory=dict)


AbsentRule = Rule[AbsentOptions]
_NOTHING = Equivalent()


def find_of_torch(context: FileContext, rule: AbsentRule) -> Iterator[Match]:
    """The uses of what torch and torchvision do not have."""
    every = context.index.once(("absent",), lambda: [*uses_of_absent(context)])  # several rules ask that
    yield from _matches(context, rule, every)


def find_of_npus(context: FileContext, rule: AbsentRule) -> Iterator[Match]:
    """The uses of what torch_npu does not have, or calls deprecated."""
    yield from _matches(context, rule, context.index.once(("npu code",), lambda: [*uses_of_npus(context)]))


def _matches(context: FileContext, rule: AbsentRule, every: list[Use]) -> Iterator[Match]:
    uses: list[Use] = []
    for use in every:
        known = rule.options.names.get(use.written, _NOTHING)
        if use.about == rule.options.about and tables.as_tuple(known.since or "0") <= context.version.tuple:
            if use.about != "deprecated" or known is not _NOTHING or instead(use.name):
                uses.append(use)
    fixed: set[ast.AST] = set()
    for use in uses:
        whole = _without_module(context, rule, use)
        if whole is not None:
            match, members = whole
            fixed.update([use.node, *members])
            yield match
    moved: dict[Import, list[Use]] = {}
    bound: list[str] = []
    for use in uses:
        if not fixed.isdisjoint([use.node, *attributes(use.node)]):
            continue
        if use.parameter is not None:
            yield from _parameter(context, rule, use, use.parameter)
        elif isinstance(use.node, (ast.Import, ast.ImportFrom)) and _equivalent(rule, use).is_bound:
            moved.setdefault(use.node, []).append(use)
            bound += [f"{use.written}."] if isinstance(use.node, ast.ImportFrom) else []
        elif not use.written.startswith(tuple(bound)):  # what it goes on to bind has its members
            yield from _name(context, rule, use)
    for node, brought in moved.items():
        yield from _import(context, rule, node, brought)


def _equivalent(rule: AbsentRule, use: Use) -> Equivalent:
    every = rule.options.names
    pattern = fitting(tuple(every), (), use.written)
    known = every.get(pattern, _NOTHING)
    if known.name.endswith(".*"):
        return replace(known, name=known.name[:-1] + use.written[len(pattern) - 1 :])
    return known


def find_of_library(context: FileContext, rule: AbsentRule) -> Iterator[Match]:
    """The imports and uses of a library's names that torch has: all of what an import brings, or none."""
    index = context.index

    def use_of(node: ast.expr | Import, name: str) -> Use:
        use = Use(node, name, name, "library")
        known, calls = _equivalent(rule, use), map(index.call_of, _reads(index, use))
        target = _target(context, known, *calls) or known.name
        return use._replace(message=_("{name} is {use} in torch", name=name, use=target))

    uses = [use_of(*each) for each in context.uses_of(rule)]
    left = [use for use in uses if isinstance(use.node, ast.Attribute)]
    gone, fixed = set[tuple[int, int]](), list[ast.expr]()
    for node in (each for each in index.imports if isinstance(each, ast.ImportFrom)):
        brought = [use_of(node, name) for name in imported(node) if context.fits(rule, name)]
        moved = [use for use in brought if _can_move(context, rule, node, use)]
        yield from _import(context, rule, node, moved) if moved else ()
        gone |= {index.span(node)} if len(moved) == len(brought) else set()
        stays = {read for use in brought if use not in moved for read in _reads(index, use)}
        left += [use for use in uses if use.node in stays]
    yield from (each for each in every_import(context, [rule]) if each.finding.span not in gone)
    for use in left:
        place, call = use.node, index.call_of(use.node)
        is_member = isinstance(place, ast.Attribute)
        may_change = is_member and not _has_other_way(index, place)
        changes = [each for each in _name(context, rule, use) if each.edits] if may_change else []
        yield from changes
        if changes and isinstance(place, ast.expr):
            fixed.append(place)
        elif call is not None and not is_caught(index, place, IMPORT_ERRORS):
            if is_member or not is_replaced(context, rule, call):
                words = N_("Write {use} with its arguments, or skip the call if the library is missing.")
                known = _equivalent(rule, use)
                advice = _(words, use=known.chosen(call) or known.name)
                yield found(context, rule, call, api=use.name, advice=advice)
    yield from _unused_imports(context, rule, fixed)


def _reads(index: ModuleIndex, use: Use) -> Sequence[ast.expr]:
    """Where what an import brings is read."""
    if not isinstance(use.node, (ast.Import, ast.ImportFrom)):
        return [use.node]
    alias = _alias(use.node, use.written)
    return index.uses(alias.asname or alias.name, index.scope_of(use.node))


def _can_move(context: FileContext, rule: AbsentRule, node: ast.ImportFrom, use: Use) -> bool:
    """Whether what an import binds may come from torch: everywhere, the same, and without another way."""
    index, known, alias = context.index, _equivalent(rule, use), _alias(node, use.written)
    bound, scope, reads = alias.asname or alias.name, index.scope_of(node), _reads(index, use)
    others = (each for each in scope.bindings.get(bound, ()) if each.node is not node)
    if not reads or bound in scope.outer or any(others) or _has_other_way(index, node):
        return False
    owner = _owner(known.name)
    if owner and (any(owner in each.bindings for each in index.scopes) or "#" in index.segment(node)):
        return False
    calls = [call for read in reads if (call := index.call_of(read)) is not None]
    fits = all(_dropped(index, known, read) is not None for read in reads)
    return fits and len(set(map(known.chosen, calls))) < 2 and bool(_target(context, known))


def _owner(name: str) -> str:
    """The class whose member a qualified name is; empty for others."""
    owner = name.rpartition(".")[0].rpartition(".")[2]
    return owner if owner[:1].isupper() else ""


def _has_other_way(index: ModuleIndex, node: ast.AST) -> bool:
    """Whether a program does without what it cannot import: it asks first, or does more than to say so."""
    if isinstance(node, ast.Attribute):
        first = root(node)
        bound = index.bindings(first) if isinstance(first, ast.Name) else []
        ways = (
            each.kind != "import" or _has_other_way(index, index.statement_of(each.node)) for each in bound
        )
        return is_caught(index, node, IMPORT_ERRORS) or any(ways)
    names = imported(node) if isinstance(node, (ast.Import, ast.ImportFrom)) else []
    if any(is_asked_first(index, node, name.partition(".")[0]) for name in names):
        return True
    tried = catching(index, node, IMPORT_ERRORS)
    if tried is None:
        return is_caught(index, node, IMPORT_ERRORS)
    told = [each for handler in tried.handlers for each in handler.body]
    only_imports = all(isinstance(each, (ast.Import, ast.ImportFrom)) for each in tried.body)
    return bool(tried.orelse) or not only_imports or not all(isinstance(each, ast.Expr) for each in told)


def _unused_imports(context: FileContext, rule: AbsentRule, fixed: list[ast.expr]) -> Iterator[Match]:
    """The imports of the library's modules of which nothing is used any more."""
    index, library, roots = context.index, rule.match[0].partition(".")[0], set(map(root, fixed))
    for node in index.imports if fixed else ():
        gone = []
        for alias, name in zip(node.names, imported(node)):
            bound = alias.asname or (alias.name if isinstance(node, ast.ImportFrom) else library)
            uses = index.uses(bound, index.scope_of(node)) if name.partition(".")[0] == library else ()
            gone += [alias] if uses and roots.issuperset(uses) else []
        edit = without_names(index, node, gone) if gone else None
        if edit is not None and not is_caught(index, node, IMPORT_ERRORS):
            yield found(context, rule, node, api=library, edits=[edit], message=_("no longer used"))


def _severity(context: FileContext, rule: AbsentRule, node: ast.AST) -> str:
    return "warning" if rule.severity != "info" and is_conditional(context.index, node) else ""


def _name(context: FileContext, rule: AbsentRule, use: Use) -> Iterator[Match]:
    """A name where it is used, with or without an equivalent; or an import of one without."""
    known, severity = _equivalent(rule, use), _severity(context, rule, use.node)
    if known.other_device and severity:
        return
    edits, target = _instead(context, known, use.node)
    sentence = _("It can be removed.") if known.remove else ""
    sentence = _("Write {target}.", target=target) if target and use.about != "library" else sentence
    others = instead(use.name) if use.name.startswith("torch_npu.") else ""
    advice = f"{sentence} {known.advice}".strip()
    if not advice and others not in ("", "none"):
        advice = _("Use {others}.", others=_(" and ").join(others.split("|")))
    severity = "warning" if known.other_device else severity
    of_cuda = known.name.startswith("torch.cuda.")
    says = partial(found, message=use.message, advice=advice, severity=severity, needs_npu=of_cuda)
    yield says(context, rule, use.node, api=use.name, edits=edits or (), safety=known.fix)


def _target(context: FileContext, known: Equivalent, *calls: ast.Call | None) -> str:
    """The name that takes the place of one, by its calls; empty where this version has it not either."""
    if chosen := next(filter(None, (known.chosen(call) for call in calls if call is not None)), ""):
        return chosen
    if known.name.startswith("torch.cuda."):
        npu = npu_names.look_up(known.name, context.version)
        return npu.npu if npu else ""
    if known.name.startswith(("torch_npu.", "torch.npu.")):
        return known.name if absence(spelled(known.name), context.version) is None else ""
    if known.name.startswith("torch.") and not of_version(context.version.text).present(known.name):
        return ""
    return known.name


def _instead(context: FileContext, known: Equivalent, node: ast.AST) -> tuple[list[Edit] | None, str]:
    """The edits that write the equivalent of a name, and the equivalent."""
    index, call = context.index, context.index.call_of(node)
    target = _target(context, known, call)
    if not isinstance(node, ast.expr):
        return None, target
    base = root(node)
    beginning = index.qualified_name(base)
    if known.remove:
        statement = index.parent(call) if call is not None else None
        return ([without_statement(index, statement)] if isinstance(statement, ast.Expr) else None), ""
    if known.value and "\n" not in known.value:
        return [instead_of(index, node, known.value)], known.value
    if known.expression:
        torch = index.segment(base) if beginning == "torch" else ""
        text = known.expression.format(torch=torch or "torch", source=index.segment(call or node))
        if call is None or not torch:
            return None, text
        is_open = isinstance(index.parent(call), (ast.If, ast.While, ast.Return, ast.Assign))
        text = text[1:-1] if text.startswith("(") and is_open else text
        return [instead_of(index, call, text)], text
    dropped = _dropped(index, known, node)
    if not target or dropped is None or not isinstance(node, (ast.Attribute, ast.Name)):
        return None, target
    if beginning and target.startswith(f"{beginning}."):
        return [Edit(index.end(base), index.end(node), target[len(beginning) :]), *dropped], target
    module = torch_module(index, node) if target.startswith("torch.") else None
    written = f"{module}{target[len('torch') :]}" if module else import_form(target)
    is_there = module is not None or written.startswith("torch_npu.")
    return [instead_of(index, node, written), *dropped] if is_there else None, target


def _dropped(index: ModuleIndex, known: Equivalent, node: ast.expr) -> list[Edit] | None:
    """The edits that take out of a call what the equivalent does not take; None where that cannot be done."""
    call = index.call_of(node)
    if call is None:
        if not (known.drops or known.parameters) or asks_for_type(index, node):
            return []
        calls = [index.call_of(read) for read in index.reads_of(node) if read is not node]
        fits = known.as_value and all(known.edits(index, each) == [] for each in calls if each is not None)
        return [] if fits else None
    return [Edit(index.end(node), index.end(call), "")] if known.bare else known.edits(index, call)


def _import(context: FileContext, rule: AbsentRule, node: Import, uses: list[Use]) -> Iterator[Match]:
    """An import of names that have equivalents: these are imported, and bound to the same names."""
    index = context.index
    moved: dict[str, str] = {}
    values: dict[str, str] = {}
    whole: dict[str, str] = {}  # what is imported by its own name
    gone: list[Use] = []
    for use in uses:
        alias, known = _alias(node, use.written), _equivalent(rule, use)
        if known.value and isinstance(node, ast.ImportFrom) and "#" not in index.segment(node):
            values[alias.name] = known.value
            gone.append(use)
            continue
        reads = _reads(index, use)
        target = _target(context, known, *map(index.call_of, reads))
        called = [read for read in reads if known.parameters or index.call_of(read)]
        changed = known.drops or known.bare or known.parameters
        dropped = [(read, _dropped(index, known, read)) for read in called if changed]
        if not target or any(edits is None for _, edits in dropped):
            yield from _name(context, rule, use)
            continue
        owner, member = _owner(target), target.rpartition(".")[2]
        if owner:  # that is imported, and the uses name it
            whole[f"{owner} as {alias.asname or alias.name}"] = owner
        moved[alias.name] = target.rpartition(".")[0] if owner else target
        gone.append(use)
        for read, dropping in dropped:
            named = [instead_of(index, read, f"{owner}.{member}")] if owner else []
            if edits := [*named, *(dropping or ())]:
                drops = " and no ".join(known.drops) or "call"
                message = _("{target} does not accept {drops}", target=target, drops=drops)
                message = use.message if use.about == "library" else message
                call = index.call_of(read) or read
                yield found(context, rule, call, api=use.name, edits=edits, message=message)
    if gone:
        safe = all(_equivalent(rule, use).fix == "safe" for use in gone)
        api = ", ".join(use.written for use in gone)
        message = "; ".join(dict.fromkeys(use.message for use in gone))
        others = dict.fromkeys(each.advice for use in gone if (each := _equivalent(rule, use)).advice)
        written = (*moved.values(), *values.values()) if gone[0].about != "library" else ()
        short = [text for text in written if "\n" not in text]
        advice = _("Write {target}.", target=", ".join(short)) if short else ""
        advice = " ".join(filter(None, [advice, *others]))
        says = partial(found, api=api, message=message, advice=advice, safety="safe" if safe else "unsafe")
        start, end, text = move_names(index, node, moved, values)
        for bound, owner in whole.items():
            text = re.sub(rf"\b{bound}\b", owner, text)
        severity = _severity(context, rule, node)
        yield says(context, rule, node, edits=[Edit(start, end, text)], severity=severity)


def _alias(node: Import, name: str) -> ast.alias:
    """What a statement imports by a name in the form of the tables."""
    return next(each for each, full in zip(node.names, imported(node)) if spelled(full) == name)


def _without_module(
    context: FileContext, rule: AbsentRule, use: Use
) -> tuple[Match, list[ast.Attribute]] | None:
    """The import of a module that is gone, with all that is read of it; None where that cannot be taken out.

    ``from torch import _six`` with ``_six.inf`` becomes ``import math`` with ``math.inf``. Other names that
    the statement imports stay; a comment inside of it would be lost.
    """
    index, node = context.index, use.node
    parted = ((*name.rpartition("."), each) for name, each in rule.options.names.items())
    known = {last: each for home, _dot, last, each in parted if home == use.written and not each.drops}
    if not isinstance(node, (ast.Import, ast.ImportFrom)) or use.written != use.name or not known:
        return None
    if _equivalent(rule, use).is_bound or "#" in index.segment(node):
        return None
    alias = _alias(node, use.name)
    whole = isinstance(node, ast.Import) and not alias.asname  # import torch._six binds torch
    package, *hidden = use.name.split(".") if whole else [alias.asname or alias.name]
    bindings = index.scope_of(node).bindings.get(package, ())
    if not whole and len(bindings) != 1:
        return None
    edits: list[Edit] = []
    members: list[ast.Attribute] = []
    texts: dict[str, str] = {}  # each with the module that has to be imported for it
    for read in index.uses(package, index.scope_of(node)):
        member: ast.AST | None = read
        for part in hidden:
            member = index.parent(member) if member is not None else None
            member = member if isinstance(member, ast.Attribute) and member.attr == part else None
        if member is not None:
            member = index.parent(member)
            if not isinstance(member, ast.Attribute):
                return None
            text, module = _of_member(context, known.get(member.attr, _NOTHING))
            if not text:
                return None
            edits.append(instead_of(index, member, text))
            members.append(member)
            texts[text] = module
    is_bound = whole and all(each.node is node or each.name != package for each in bindings)
    needed = dict.fromkeys(f"import {each}" for each in (is_bound and package, *texts.values()) if each)
    edits += filter(None, [without_names(index, node, [alias], needed)])
    advice = _("Write {target}.", target=", ".join(texts)) if texts else _("It can be removed.")
    safety = "safe" if all(known[each.attr].fix == "safe" for each in members) else "unsafe"
    says = partial(found, message=use.message, advice=advice, safety=safety)
    severity = _severity(context, rule, node)
    return says(context, rule, node, api=use.name, edits=edits, severity=severity), members


def _of_member(context: FileContext, known: Equivalent) -> tuple[str, str]:
    """What is written for a member of a module, and the module that has to be imported for it, if any.

    Both are empty where it is not known, or another release's of torch.
    """
    target = _target(context, known)
    if known.value or not target or target.startswith("torch"):
        return known.value, ""
    home, _dot, name = target.rpartition(".")
    if known.module:
        return target, target
    return (name, "") if home == "builtins" else (target, home)


def _parameter(context: FileContext, rule: AbsentRule, use: Use, parameter: ast.keyword) -> Iterator[Match]:
    """An argument that the version does not take: it is left out where the rule says so."""
    index, call = context.index, use.node
    every, name = rule.options.parameters, f"{use.name}.{parameter.arg}"
    if fitting(rule.excluded, (), name) or not isinstance(call, ast.Call):
        return
    known = every.get(fitting(tuple(every), (), name), Dropped())
    safety = "safe" if index.segment(parameter.value) in known.usual else known.fix
    edits = without_arguments(index, call, [parameter]) if safety != "none" else None
    severity = _severity(context, rule, call)
    says = partial(found, message=use.message, advice=known.advice, severity=severity, safety=safety)
    yield says(context, rule, call, span=index.span(parameter), api=use.name, edits=edits or ())
