"""Kind ``name``: a qualified API name, wherever it is written, through any alias."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import field
from functools import cache
from sys import intern

from migrator.api_support import npu_names
from migrator.findings.finding import Edit
from migrator.language import _
from migrator.matchers.argument_edits import without_statement
from migrator.matchers.context import FileContext, Match, Said, found
from migrator.matchers.npu_import import import_at_top, import_form, move_names
from migrator.matchers.packs import Options, Rule, fitting, pattern_fits, rank, rule_of
from migrator.matchers.starting_words import last_part
from migrator.names.conditions import is_asked_for, is_guarded, stops_without
from migrator.names.index import ModuleIndex, identifiers
from migrator.names.qualified import rooted
from migrator.names.strings import replace_text
from migrator.names.tree import Import, argument_of, bare_name, called_name, imported, string_value
from migrator.names.what_is import options_like


class NameOptions(Options):
    """Which uses of a name are only reported.

    ``only_called``: all but calls. ``without_arguments``: calls with arguments. ``may_be_none`` makes an
    ``info`` of a question for the value, and of a use behind one, and a ``blocker`` of what stops without it.
    ``unless_asked``: silent where the program checks for the name, or the version of torch, before.
    ``if_called``: only a call is as grave as the rule says, other uses are an ``info``. ``forms`` are the NPU
    names of some, by their last parts. ``removes``: calls that are taken out where no NPU name is known and
    nothing reads their value. ``in_a_class``: NPU names that no import can bring, as they are a class's.
    """

    only_called: bool = False
    without_arguments: bool = False
    may_be_none: bool = False
    unless_asked: bool = False
    if_called: bool = False
    forms: dict[str, str] = field(default_factory=dict)
    removes: tuple[str, ...] = ()
    in_a_class: tuple[str, ...] = ()


NameRule = Rule[NameOptions]
Chain = tuple[ast.expr, str, list[ast.Attribute]]  # a root, what it stands for, what is behind it
# Libraries that have a module named cuda, too.
_WITH_CUDA = frozenset({"cupy", "chainer", "numba", "pycuda", "mxnet", "paddle", "jax", "dpctl", "mlx"})
# Calls that read a version, or a number, from a text.
_READS = frozenset({"parse", "Version", "LooseVersion", "StrictVersion", "parse_version", "float", "int"})


def find(context: FileContext, rules: list[NameRule]) -> Iterator[Match]:
    """Uses of the names, and the imports that bring them."""
    for ref in context.index.refs:
        yield from _in_reference(context, rules, ref)
    for node in context.index.imports:
        yield from _in_import(context, rules, node)


def npu_form(context: FileContext, rule: NameRule, name: str) -> tuple[str, str]:
    """The NPU name that replaces ``name`` (empty: none), and the advice where there is none.

    ``replace: api_db`` asks the API database; a fixed text replaces the pattern's stem, with a ``*`` kept.
    """
    if rule.replace == "api_db":
        known = npu_names.look_up(name, context.version)
        return (known.npu, known.advice) if known else ("", "")
    if not rule.replace:
        return rule.options.forms.get(name.rpartition(".")[2], ""), rule.advice
    pattern = fitting(rule.match, rule.excluded, name)
    if rule.replace.endswith(".*"):  # what is behind the pattern's own ".*", or the last name
        behind = pattern[:-2] if pattern.endswith(".*") else pattern.rpartition(".")[0]
        return rule.replace[:-2] + name[len(behind) :], ""
    return rule.replace, ""


def _in_reference(context: FileContext, rules: list[NameRule], ref: ast.expr) -> Iterator[Match]:
    index = context.index
    root, base, written = rooted(index, ref)
    if len(written) > 1 and not base.startswith("torch"):
        yield from _kept_module(context, rules, ref, base, written)
    if not base or (isinstance(root, ast.Name) and not isinstance(root.ctx, ast.Load)):
        return
    hidden = base.count(".") + 1
    name, rule = _belonging(context, rules, [*base.split("."), *(node.attr for node in written)], hidden)
    if rule is None:
        return
    if by_string := _by_string(context, rules, ref, (root, base, written)):
        yield by_string
        if by_string.edits:
            return
    # The node of the matched name: the chain may go on, as in torch.cuda.Event.record.
    used = name.count(".") + 1 - hidden
    node: ast.expr = written[used - 1] if used > 0 else root
    if rule.options.unless_asked and is_guarded(index, node, [name.rpartition(".")[2]]):
        return
    target, advice = npu_form(context, rule, name)
    is_imported = index.is_bound_by("import", root)
    if used <= 0 and isinstance(root, ast.Name):
        # A bare name: the import or the assignment that binds it is what changes.
        known = npu_names.look_up(name, context.version) if rule.replace == "api_db" else None
        if known is None or target or not is_imported:
            return
    if not target:
        yield _removed(context, rule, ref, name) or _report(context, rule, node, name, advice)
        return
    edits = _renaming(context, rules, (root, base, written[:used]), name, target) if target != name else []
    package = target.partition(".")[0]
    in_full = any(edit.text.startswith(f"{package}.") for edit in edits)
    if in_full and rule.options.needs_npu is False and not index.scope_of(root).look_up(package):
        place = import_at_top(index, f"import {target.rpartition('.')[0]}")
        edits = [*edits, place[1]] if place else []
        advice = advice or _("Write {target}.", target=target)
    if edits or in_full:
        # The new name may take other arguments than this use has, or those that call it later.
        call, options = index.call_of(ref), rule.options
        others = options.without_arguments and call is not None and (call.args or call.keywords)
        if others or (call is None and options.only_called):
            message = _("on NPUs {name} is {target}, with other arguments", name=name, target=target)
            yield found(context, rule, node, api=name, message=message)
            return
        message = rule.message.replace("{npu}", target)
        message = message or _("use {target} instead of {name}", target=target, name=name)
        # Behind a name that an import brings from torch_npu, torch_npu is there already.
        needs_npu = not (is_imported and _moved_by_import(context, rules, base))
        # A parameter may be handed in by callers of which not all are known.
        safety = "unsafe" if index.is_bound_by("param", root) else ""
        about: Said = {"api": name, "advice": advice, "message": message, "safety": safety, "edits": edits}
        yield found(context, rule, node, needs_npu=needs_npu, **about)


def _by_string(context: FileContext, rules: list[NameRule], ref: ast.expr, chain: Chain) -> Match | None:
    """``getattr(torch.cuda, "CUDAGraph")``: a member named in a string, whose NPU name is another one."""
    index, (_root, base, written), call = context.index, chain, context.index.parent(ref)
    is_asked = called_name(call) in ("getattr", "hasattr")
    if not (is_asked and isinstance(call, ast.Call) and call.args[:1] == [ref]):
        return None
    text = argument_of(call, "name", 1)
    member = string_value(text) or ""
    module = ".".join([base, *(node.attr for node in written)])
    name = f"{module}.{member}"
    rule = rule_of(rules, name)
    if not isinstance(text, ast.Constant) or rule is None or not context.fits(rule, name):
        return None
    (target, advice), home = npu_form(context, rule, name), npu_form(context, rule, module)[0]
    if not target:  # whoever asks, or gives a default, has another way
        is_read = home and called_name(call) == "getattr" and len(call.args) == 2
        return _report(context, rule, text, name, advice) if is_read else None
    if f"{home}.{member}" == target:
        return None
    home, _dot, last = target.rpartition(".")
    edits = list[Edit]()
    if base == "torch":
        edits = _renaming(context, rules, chain, module, home) if home != module else []
        edits += replace_text(index, text, member, last, 1) if last != member else []
    message = _("use {target} instead of {name}", target=target, name=name)
    advice = "" if edits else _("Write {target}.", target=target)
    return found(context, rule, text, api=name, message=message, advice=advice, edits=edits)


def _kept_module(
    context: FileContext, rules: list[NameRule], ref: ast.expr, base: str, written: list[ast.Attribute]
) -> Iterator[Match]:
    """``self.lib.cuda.synchronize()``: a module that some other value may be is reported, not followed."""
    index = context.index
    place = next((place for place, node in enumerate(written[:-1]) if node.attr == "cuda"), None)
    if place is None or not isinstance(written[-1].ctx, ast.Load):
        return
    holder = written[place].value
    name = ".".join(["torch", *(node.attr for node in written[place:])])
    rule, known = rule_of(rules, name), npu_names.look_up(name, context.version)
    if rule is None or known is None or not known.npu:
        return
    called = bare_name(holder) or called_name(holder) or index.segment(holder)
    own = ("def", "class")
    if isinstance(holder, ast.Name) and all(each.kind in own for each in index.bindings(holder)):
        return  # no import, no parameter: nobody's, or a class of the program's own
    named = "torch" in called
    # Without that word its ``cuda`` may be torch.cuda where it is called and nothing speaks against it.
    is_others = base and not base.startswith(".") and not context.project.owns(base, context.name)
    is_called = index.call_of(ref) is not None and not options_like(holder)
    if not named and (not is_called or is_others or identifiers(index.text) & _WITH_CUDA):
        return
    message = _("{name} accessed through {called} is left unchanged", name=name, called=called)
    advice = _("If it is the torch module, write {npu}.", npu=known.npu)
    severity = "" if named else "warning"
    yield found(context, rule, written[-1], api=name, message=message, advice=advice, severity=severity)


def _report(context: FileContext, rule: NameRule, node: ast.AST, name: str, advice: str) -> Match:
    """The message for a name without an NPU equivalent, or one that the database does not know."""
    called, severity = context.index.call_of(node), ""
    if rule.replace != "api_db":
        # A file that asks with hasattr for a name that is missing on an NPU has another way.
        asked = rf"\bhasattr\([^()]*[\"']{name.rpartition('.')[2]}[\"']"
        foreseen = rule.status == "absent" and re.search(asked, context.index.text) is not None
        if foreseen or (rule.options.if_called and called is None):
            severity = "info"
        if rule.options.may_be_none and isinstance(node, ast.expr):
            severity = _severity_of_none(context.index, node, name)
        return found(context, rule, node, api=name, advice=advice, severity=severity)
    known = npu_names.look_up(name, context.version)
    if known is None:
        status, severity, advice = "unknown", "warning", _("See the torch_npu documents.")
        message = _("{name} is not in the API database", name=name)
    else:
        status, harmless = "absent", known.unchanged in ("works", "no_effect")
        # Torch has the name: the call fails.
        severity = "info" if harmless else "blocker" if called else "error"
        left = _("; left unchanged, because it does not raise") if harmless else ""
        about = {"name": name, "version": context.version.text, "left": left}
        message = _("{name} has no NPU equivalent in torch_npu for torch {version}{left}", **about)
    said: Said = {"api": name, "severity": severity, "advice": advice, "message": message}
    return found(context, rule, node, status=status, **said)


def _removed(context: FileContext, rule: NameRule, ref: ast.expr, name: str) -> Match | None:
    """The statement that calls a name without an NPU equivalent, taken out; None where it has to stay."""
    call = context.index.call_of(ref)
    statement = context.index.parent(call) if call is not None else None
    if not isinstance(statement, ast.Expr) or name not in rule.options.removes:
        return None
    message = "" if "{npu}" in rule.message else rule.message  # of a rule that has NPU names for others
    message = message or _("{name} has no NPU equivalent; its value is not used", name=name)
    about: Said = {"api": name, "message": message, "safety": "unsafe"}
    about["edits"] = [without_statement(context.index, statement)]
    return found(context, rule, statement, status="absent", needs_npu=False, **about)


def _severity_of_none(index: ModuleIndex, node: ast.expr, name: str) -> str:
    """How grave it is that a value is None, or an answer no; empty for what the rule says."""
    value = index.call_of(node) or node
    if stops_without(index, value):
        return "blocker"
    # if x, not x, x is None, x and …; and what is only shown
    parent = index.parent(value)
    # {"cuda": str(version)}, {"cuda": version if cuda else None}
    holder = index.parent(parent) if called_name(parent) == "str" else index.parent(index.chosen(value))
    shown = isinstance(holder, (ast.JoinedStr, ast.FormattedValue, ast.Dict))
    if shown or called_name(parent) in ("print", "info", "debug", "warning"):
        return "info"
    if isinstance(parent, ast.Compare):
        is_tested = isinstance(parent.ops[0], (ast.Is, ast.IsNot))
    else:
        is_tested = isinstance(parent, (ast.UnaryOp, ast.BoolOp)) or getattr(parent, "test", None) is value
    if is_tested and "version.hip" in index.text:
        return ""  # without CUDA's version it is taken for ROCm
    if is_tested or is_asked_for(index, value, name):
        return "info"
    if isinstance(parent, ast.Compare):  # does None fail at once?
        fails = isinstance(parent.ops[0], (ast.Lt, ast.LtE, ast.Gt, ast.GtE))
    else:
        is_read = isinstance(parent, ast.Call) and value in parent.args and called_name(parent) in _READS
        fails = is_read or isinstance(parent, ast.Attribute)
    return "blocker" if fails else ""


def _belonging(
    context: FileContext, rules: list[NameRule], parts: list[str], least: int
) -> tuple[str, NameRule | None]:
    """The leading part of a dotted name to which a rule belongs: the longest that the database knows of."""
    fits: list[tuple[str, NameRule]] = []
    if all(_fixed(rule.match).isdisjoint(parts) for rule in rules):
        return "", None  # of most names no rule speaks
    for length in range(len(parts), max(1, least) - 1, -1):
        name = ".".join(parts[:length])
        # What is taken out, is with all that begins it.
        rules = [one for one in rules if not any(pattern_fits(pattern, name) for pattern in one.excluded)]
        rule = rule_of(rules, name)
        if rule is not None and context.fits(rule, name):
            fits.append((name, rule))
    first = min((rank(rule, name) for name, rule in fits), default=None)
    unknown: tuple[str, NameRule | None] = ("", None)
    for name, rule in (each for each in fits if rank(each[1], each[0]) == first):
        known = npu_names.look_up(name, context.version) if rule.replace == "api_db" else None
        if rule.replace == "api_db" and known is None:
            unknown = (name, rule)
        elif known is not None and known.kind == "module" and unknown[1] is not None:
            return unknown  # a name in this module that is not in the table
        else:
            return name, rule  # what follows is a member of a function or a value
    return unknown


@cache
def _fixed(patterns: tuple[str, ...]) -> frozenset[str]:
    """Parts of which a name has one that fits some patterns: the last one of each that is not left open."""
    return frozenset(map(last_part, patterns))


def _renaming(
    context: FileContext, rules: list[NameRule], chain: Chain, name: str, target: str
) -> list[Edit]:
    """The smallest edits that turn a written chain into the target's name."""
    index, (root, base, written) = context.index, chain
    old, new, hidden = name.split("."), target.split("."), base.count(".") + 1
    # The hidden part may stay, or an import edit or an alias takes it along.
    if len(old) == len(new) and (old[:hidden] == new[:hidden] or _moved_by_import(context, rules, base)):
        parts = zip(written, old[hidden:], new[hidden:])
        ends = [(index.end(node), before, after) for node, before, after in parts if before != after]
        return [Edit(end - len(before.encode()), end, intern(after)) for end, before, after in ends]
    end = index.end(written[-1])
    if old[:hidden] == new[:hidden] and isinstance(root, ast.Name):
        return [Edit(index.end(root), end, intern("".join(f".{part}" for part in new[hidden:])))]
    return [Edit(index.start(root), end, intern(import_form(target)))]


def _moved_by_import(context: FileContext, rules: list[NameRule], base: str) -> bool:
    """Whether the hidden part of a chain is one that an import edit or an alias takes along."""
    return any(rule.fits(base) and npu_form(context, rule, base)[0] for rule in rules)


def _in_import(context: FileContext, rules: list[NameRule], node: Import) -> Iterator[Match]:
    """Move the imported names that have an NPU equivalent; report those that have none."""
    moved: dict[str, str] = {}
    reasons: list[tuple[NameRule, str]] = []
    for alias, name in zip(node.names, imported(node)):
        # A plain import binds the top package: the uses carry the whole name.
        rule = None if isinstance(node, ast.Import) and not alias.asname else rule_of(rules, name)
        if rule is None or name == "torch" or not context.fits(rule, name):
            continue
        if rule.options.unless_asked and is_guarded(context.index, node, [name.rpartition(".")[2]]):
            continue
        target, advice = npu_form(context, rule, name)
        if any(pattern_fits(pattern, target) for pattern in rule.options.in_a_class):
            advice = _("Write {target} where it is used.", target=target)
            yield found(context, rule, node, api=name, advice=advice)
        elif target and target != name:
            moved[alias.name] = target
            reasons.append((rule, name))
        elif not target:
            yield _report(context, rule, node, name, advice)
    if not moved:
        return
    homes = {import_form(target).rpartition(".")[0] for target in moved.values()}
    api, edits = ", ".join(name for given, name in reasons), [move_names(context.index, node, moved)]
    message = _("import from {modules}", modules=_(" and ").join(sorted(homes)))
    yield found(context, reasons[0][0], node, api=api, edits=edits, needs_npu=False, message=message)
