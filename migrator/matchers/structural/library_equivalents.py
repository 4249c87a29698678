"""A library for CUDA whose names have equivalents in torch (apex): they are taken from torch.

A name moves with all its uses in a file, or not at all: where one of them gives what torch's equivalent does
not take, the name is reported. So it is where the program has a way of its own without the library.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from migrator.api_support.versions import in_range
from migrator.findings.finding import Edit
from migrator.language import N_, _
from migrator.matchers.argument_edits import Arguments, without_statement
from migrator.matchers.context import FileContext, Match, found, instead_of
from migrator.matchers.kinds.library import every_import
from migrator.matchers.npu_import import move_names, torch_module
from migrator.matchers.packs import Options, Rule
from migrator.matchers.query.uses import is_replaced
from migrator.names.conditions import IMPORT_ERRORS, annotated, catching, is_asked_first, is_caught
from migrator.names.index import ModuleIndex
from migrator.names.tree import Import, called_name, imported, root


@dataclass(frozen=True)
class Equivalent(Arguments):
    """What stands for a name of the library.

    ``name`` is torch's, ``member`` one of it that is called. ``since`` is the first torch with the name.
    ``as_value``: it may be handed on to what calls it, as the defaults are the same.
    """

    name: str = field(default="", metadata={"required": True})
    member: str = ""
    since: str = ""
    as_value: bool = False


class EquivalentOptions(Options):
    """``equivalents``, by the last parts of the names that a rule matches."""

    equivalents: dict[str, Equivalent] = field(default_factory=dict)


EquivalentRule = Rule[EquivalentOptions]


class _Use(NamedTuple):
    """A use of a name; without a ``target`` it has no equivalent. ``edits`` are those of its arguments."""

    node: ast.expr
    name: str
    equivalent: Equivalent
    target: str = ""
    edits: tuple[Edit, ...] = ()

    @property
    def written(self) -> str:
        """What takes its place, with the member that is called."""
        member, target = self.equivalent.member, self.target or self.equivalent.name
        return f"{target}.{member}" if member else target

    def found(self, context: FileContext, rule: EquivalentRule, *edits: Edit) -> Match:
        """The finding that it becomes that, by some edits and those of its arguments."""
        message = _("{name} is {use} in torch", name=self.name, use=self.written)
        place = context.index.call_of(self.node) or self.node
        return found(context, rule, place, api=self.name, edits=[*edits, *self.edits], message=message)


def find(context: FileContext, rule: EquivalentRule) -> Iterator[Match]:
    """The imports and the uses of the names, with what they become."""
    index = context.index
    uses = [_answered(context, rule, *each) for each in [*context.uses_of(rule)]]
    members = [use for use in uses if isinstance(use.node, ast.Attribute)]
    moving: dict[Import, dict[str, list[_Use]]] = {}
    left: list[_Use] = []
    for node in index.imports:
        for alias, name in zip(node.names, imported(node)):
            if isinstance(node, ast.ImportFrom) and context.fits(rule, name):
                # The uses of what this statement binds.
                of_name = index.uses(alias.asname or alias.name, index.scope_of(node))
                own = [use for use in uses if use.node in of_name]
                if _can_move(context, node, alias, own):
                    moving.setdefault(node, {})[alias.name] = own
                else:
                    left += own
    for node, names in moving.items():
        yield from _moved(context, rule, node, names)
    fixed = [use for use in members if use.target and torch_module(index, use.node)]
    for use in fixed:
        text = f"{torch_module(index, use.node)}{use.written.removeprefix('torch')}"
        yield use.found(context, rule, instead_of(index, use.node, text))
    yield from _imports_gone(context, rule, fixed)
    named = {each: sum(map(rule.fits, imported(each))) for each in index.imports}
    stays = {index.span(each) for each, count in named.items() if len(moving.get(each, ())) < count}
    yield from (each for each in every_import(context, [rule]) if each.finding.span in stays)
    for use in (use for use in [*left, *members] if use not in fixed):
        call = index.call_of(use.node)
        if call is None or is_caught(index, use.node, IMPORT_ERRORS):
            continue
        if isinstance(use.node, ast.Attribute) or not is_replaced(context, rule, call):
            words = N_("Write {use} with its arguments, or skip the call if the library is missing.")
            yield found(context, rule, call, api=use.name, advice=_(words, use=use.written))


def _answered(context: FileContext, rule: EquivalentRule, node: ast.expr, name: str) -> _Use:
    index = context.index
    equivalent = rule.options.equivalents[name.rpartition(".")[2]]
    nothing, call = _Use(node, name, equivalent), index.call_of(node)
    if equivalent.since and not in_range(f">={equivalent.since}", context.version.tuple):
        return nothing
    if isinstance(node, ast.Attribute):
        # A program may go on where it cannot import the module of a name that is written in full.
        first = root(node)
        bound = index.bindings(first) if isinstance(first, ast.Name) else []
        imports = [index.statement_of(each.node) for each in bound if each.kind == "import"]
        has_way = len(imports) < len(bound) or any(_has_other_way(index, each) for each in imports)
        if has_way or is_caught(index, node, IMPORT_ERRORS):
            return nothing
    if call is not None:
        return _called(index, call, nothing)
    around = index.parent(node)
    around = index.parent(around) if isinstance(around, ast.Tuple) else around
    # A class that is only asked for: isinstance(x, (A, B)), an annotation.
    is_asked_for = called_name(around) in ("isinstance", "issubclass") or annotated(index, node) is not None
    if not equivalent.as_value and not is_asked_for:
        return nothing
    calls = [index.call_of(read) for read in index.reads_of(node) if read is not node]
    called = [_called(index, each, nothing) for each in calls if each is not None]
    fits = all(use.target and not use.edits for use in called)
    return nothing._replace(target=equivalent.name) if fits else nothing


def _called(index: ModuleIndex, call: ast.Call, use: _Use) -> _Use:
    """A use that is called, with the edits of its arguments; without a target where one does not fit."""
    own = use.equivalent
    edits = own.edits(index, call)
    return use if edits is None else use._replace(target=own.chosen(call) or own.name, edits=tuple(edits))


def _can_move(context: FileContext, node: ast.ImportFrom, alias: ast.alias, uses: list[_Use]) -> bool:
    """Whether what an import binds may come from torch: everywhere, the same, and without another way."""
    index = context.index
    scope = index.scope_of(node)
    bound = alias.asname or alias.name
    if _has_other_way(index, node):
        return False
    if bound in scope.outer or any(each.node is not node for each in scope.bindings.get(bound, ())):
        return False
    if not uses or len({use.target for use in uses if index.call_of(use.node)}) > 1:
        return False
    equivalent = uses[0].equivalent
    is_bound = any(equivalent.name.rpartition(".")[2] in each.bindings for each in index.scopes)
    if equivalent.member and (is_bound or "#" in index.segment(node)):
        return False
    return all(use.target for use in uses) and {use.node for use in uses}.issuperset(index.uses(bound, scope))


def _has_other_way(index: ModuleIndex, node: ast.AST) -> bool:
    """Whether a program does without what it cannot import: it asks first, or does more than to say so."""
    names = imported(node) if isinstance(node, (ast.Import, ast.ImportFrom)) else []
    if any(is_asked_first(index, node, name.partition(".")[0]) for name in names):
        return True
    tried = catching(index, node, IMPORT_ERRORS)
    if tried is None:
        return is_caught(index, node, IMPORT_ERRORS)
    told = [each for handler in tried.handlers for each in handler.body]
    only_imports = all(isinstance(each, (ast.Import, ast.ImportFrom)) for each in tried.body)
    return bool(tried.orelse) or not only_imports or not all(isinstance(each, ast.Expr) for each in told)


def _moved(
    context: FileContext, rule: EquivalentRule, node: Import, names: dict[str, list[_Use]]
) -> Iterator[Match]:
    """The statement that imports names from torch, and their uses where these change."""
    index = context.index
    # What all uses of a name are of torch; those that only ask for the class go along.
    chosen: dict[str, str] = {}
    for name, uses in names.items():
        called = (use.target for use in uses if use.target != use.equivalent.name)
        chosen[name] = next(called, uses[0].target)
    moved = move_names(index, node, chosen)
    for alias in node.names:
        for use in names.get(alias.name, ()):
            own, edits = use.target.rpartition(".")[2], []
            if use.equivalent.member:
                edits.append(instead_of(index, use.node, f"{own}.{use.equivalent.member}"))
                bound = f"import {own} as {alias.asname or alias.name}"
                moved = Edit(moved.start, moved.end, moved.text.replace(bound, f"import {own}"))
            if edits or use.edits:
                yield use.found(context, rule, *edits)
    first, *others = (uses[0] for uses in names.values())
    message = _("{name} is {use} in torch", name=first.name, use=first.written)
    if others:
        message = _("{names} have equivalents in torch", names=", ".join(names))
    api = ", ".join(use.name for use in (first, *others))
    yield found(context, rule, node, api=api, edits=[moved], message=message)


def _imports_gone(context: FileContext, rule: EquivalentRule, fixed: list[_Use]) -> Iterator[Match]:
    """The imports of the library's modules of which nothing is used any more."""
    index = context.index
    library = rule.match[0].partition(".")[0]
    inner = {part for use in fixed for part in ast.walk(use.node) if isinstance(part, ast.Name)}
    for node in index.imports if inner else ():
        scope, gone = index.scope_of(node), []
        for alias, name in zip(node.names, imported(node)):
            bound = alias.asname or (alias.name if isinstance(node, ast.ImportFrom) else library)
            uses = index.uses(bound, scope) if name.partition(".")[0] == library else ()
            if uses and inner.issuperset(uses):
                gone.append(alias)
        if gone and not is_caught(index, node, IMPORT_ERRORS):
            kept = [ast.unparse(alias) for alias in node.names if alias not in gone]
            if kept and "#" in index.segment(node):
                continue
            start = f"from {node.module} import" if isinstance(node, ast.ImportFrom) else "import"
            text = f"{start} {', '.join(kept)}"
            edits = [instead_of(index, node, text) if kept else without_statement(index, node)]
            yield found(context, rule, node, api=library, edits=edits, message=_("no longer used"))
