"""Code for NPUs that is of another torch_npu: names that this one lacks, or none has, or that are deprecated.

What a release has is in ``migrator.api_support.own_names``; what to write is in the options of the rules.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from migrator.api_support import tables
from migrator.api_support.own_names import absence, instead, spelled
from migrator.api_support.torch_names import of_version, short
from migrator.findings.finding import Edit
from migrator.language import _
from migrator.matchers.context import FileContext, Match, found, instead_of
from migrator.matchers.dotted import fitting
from migrator.matchers.moved_imports import import_form, move_names
from migrator.matchers.npu_import import torch_module
from migrator.matchers.options import SAID
from migrator.matchers.packs import Options, Rule
from migrator.names.execution import is_conditional
from migrator.names.guards import MISSING, is_guarded
from migrator.names.index import ModuleIndex
from migrator.names.tree import Import, attributes, hands_on, imported

_PACKAGES = ("torch_npu.", "torch.npu.")


@dataclass(frozen=True)
class Successor:
    """What to write in place of a name: ``name``, whose last part may be a ``*``, or what ``advice`` says.

    ``takes`` are the parameters that both have, in this order; without them all arguments stay as they are.
    ``since`` is the first torch for which a name is deprecated.
    """

    name: str = ""
    takes: tuple[str, ...] = ()
    since: str = ""
    advice: str = field(default="", metadata=SAID)


@dataclass(frozen=True)
class CodeOptions(Options):
    """Which names a rule is about, and what stands for some of them; a ``*`` is as in ``match``.

    ``later``: this torch_npu does not have them yet; ``earlier``: no more; ``unknown``: none has them.
    ``deprecated`` are those that torch_npu's lists call so, and those of ``names``.
    """

    about: Literal["later", "earlier", "unknown", "deprecated"] = "later"
    names: dict[str, Successor] = field(default_factory=dict)


class _Use(NamedTuple):
    node: ast.expr | Import
    name: str  # in the form torch_npu.npu.…
    about: str
    message: str


def find(context: FileContext, rule: Rule[CodeOptions]) -> Iterator[Match]:
    """The uses that a rule is about; what one statement imports is moved together."""
    index = context.index
    every = index.once(("npu code",), lambda: [*_uses(context)])
    uses = [use for use in every if _is_about(context, rule, use)]
    moved: dict[ast.ImportFrom, dict[str, _Use]] = {}
    for use in uses:
        known = rule.options.names.get(fitting(tuple(rule.options.names), (), use.name), _NOTHING)
        target = _target(context, known, use.name)
        if target and isinstance(use.node, ast.ImportFrom) and _all_fit(index, known, use.node, use.name):
            moved.setdefault(use.node, {})[target] = use
            continue
        told = known.advice or (_("Write {target}.", target=target) if target else "")
        yield found(
            context,
            rule,
            use.node,
            api=use.name,
            edits=_edits(index, known, use.node, target),
            message=use.message,
            advice=told or _deprecation(use.name) or rule.advice,
            severity=_severity(index, rule, use.node),
        )
    for node, targets in moved.items():
        names = {_alias(node, use.name).name: target for target, use in targets.items()}
        yield found(
            context,
            rule,
            node,
            api=", ".join(use.name for use in targets.values()),
            edits=[move_names(index, node, names)],
            message="; ".join(use.message for use in targets.values()),
            advice=_("Write {target}.", target=", ".join(targets)),
            severity=_severity(index, rule, node),
        )


def _is_about(context: FileContext, rule: Rule[CodeOptions], use: _Use) -> bool:
    if use.about != rule.options.about:
        return False
    known = rule.options.names.get(use.name, _NOTHING)
    if known.since and tables.as_tuple(known.since) > context.version.tuple:
        return False
    return use.about != "deprecated" or known is not _NOTHING or bool(instead(use.name))


def _severity(index: ModuleIndex, rule: Rule, node: ast.AST) -> str:
    return "warning" if rule.severity != "info" and is_conditional(index, node) else ""


def _alias(node: ast.ImportFrom, name: str) -> ast.alias:
    """What a statement imports by a name in the form of the tables."""
    return next(each for each, full in zip(node.names, imported(node)) if spelled(full) == name)


def _all_fit(index: ModuleIndex, known: Successor, node: ast.ImportFrom, name: str) -> bool:
    alias = _alias(node, name)
    return all(
        _fits(index, known, use) for use in index.uses(alias.asname or alias.name, index.scope_of(node))
    )


_NOTHING = Successor()


def _uses(context: FileContext) -> Iterator[_Use]:
    """All uses that nothing guards: of the names that an import brings, and of members."""
    index = context.index
    refs = [(ref, index.qualified_name(ref)) for ref in index.refs]
    # What the file itself puts there, or what its imports bring, which is told of them.
    settled = {spelled(name) for ref, name in refs if isinstance(getattr(ref, "ctx", None), ast.Store)}
    for node in index.imports:
        for name in imported(node):
            use = _judged(context, node, spelled(name)) if name.startswith(_PACKAGES) else None
            if use is not None and use.name not in settled:
                settled |= {use.name} if use.about != "deprecated" else set()
                yield use
    for ref, name in refs:
        if not name.startswith(_PACKAGES):
            continue
        # The members that are written, the outermost last; what binds their root is told where it stands.
        for member in [*attributes(ref)][::-1]:
            full = spelled(index.qualified_name(member))
            if full.count(".") == 0 or full in settled or not isinstance(member.ctx, ast.Load):
                continue
            use = _judged(context, member, full)
            if use is not None:
                yield use
            if use is None or use.about != "deprecated":
                break


def _judged(context: FileContext, node: ast.expr | Import, name: str) -> _Use | None:
    """What may be said of a name; of those that are there a rule knows which are deprecated."""
    away = absence(name, context.version)
    if away is None:
        return _Use(node, name, "deprecated", _("torch_npu calls {name} deprecated", name=name))
    if is_guarded(context.index, node, [name.rpartition(".")[2]], MISSING):
        return None
    if not away.first and not away.last:
        return _Use(node, name, "unknown", _("no known torch_npu has {name}", name=name))
    release = _("torch_npu for torch {version}", version=short(context.version.text))
    later = away.later(context.version)
    when = _("first for torch {version}", version=short(away.first)) if later else ""
    when = when or _("last for torch {version}", version=short(away.last))
    message = _("{release} lacks {name}: {when}", release=release, name=name, when=when)
    return _Use(node, name, "later" if later else "earlier", message)


def _deprecation(name: str) -> str:
    """What the lists of torch_npu's operators say to use."""
    other = instead(name)
    if other in ("", "none"):
        return ""
    return _("Use {others}.", others=_(" and ").join(other.split("|")))


def _target(context: FileContext, known: Successor, name: str) -> str:
    """The name that takes the place of another; empty where this version has it not either."""
    target = known.name
    if target.endswith(".*"):
        target = f"{target[:-1]}{name.rpartition('.')[2]}"
    if target.startswith(_PACKAGES):
        return target if absence(spelled(target), context.version) is None else ""
    return target if target and of_version(context.version.text).present(target) else ""


def _edits(index: ModuleIndex, known: Successor, node: ast.expr | Import, target: str) -> list[Edit]:
    if not target or not isinstance(node, ast.expr) or not _fits(index, known, node):
        return []
    written = _written(index, node, target)
    return [instead_of(index, node, written)] if written else []


def _fits(index: ModuleIndex, known: Successor, node: ast.expr) -> bool:
    """Whether what a call gives is what both take."""
    call = index.call_of(node)
    if not known.takes:
        return True
    if call is None or hands_on(call) or len(call.args) > len(known.takes):
        return False
    return all(keyword.arg in known.takes for keyword in call.keywords)


def _written(index: ModuleIndex, node: ast.expr, target: str) -> str:
    """A name as the code at a node can say it: by its own name of torch; empty where it has none."""
    if target.startswith("torch_npu."):
        return target
    torch = torch_module(index, node)
    if torch is None:
        return import_form(target) if target.startswith("torch.npu.") else ""
    return torch + target[len("torch") :]
