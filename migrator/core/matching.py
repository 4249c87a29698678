"""All matchers over one file, and which of the fixes that they propose are made together."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Callable, NamedTuple, Optional

from migrator.core import modes
from migrator.core.fix_guards import enclosing_fstring, without_fix
from migrator.core.rules import MODES, SPECIFY_DEVICE, TRANSFER, Rules
from migrator.findings.edits import Occupied, apply
from migrator.findings.finding import Edit, Finding
from migrator.language import _
from migrator.matchers.context import FileContext, Match, insertion
from migrator.matchers.finders import KINDS, QUERY
from migrator.matchers.npu_import import imports_package, torch_npu_imports
from migrator.matchers.packs import Rule, rank
from migrator.names.index import ModuleIndex
from migrator.names.tree import imported, parse
from migrator.project.frameworks import TORCH
from migrator.project.project import Project

if TYPE_CHECKING:
    from migrator.matchers.context import TextContext

# Says of a finding, with its place in the input, whether its fix is to be made.
Admit = Callable[[Finding], bool]


def match_rules_in_text(context: TextContext, chosen: list[Rule], rules: Rules) -> list[Match]:
    """What the chosen rules match in a file that is no Python."""
    every = [match for kind, several in _by_kind(chosen) for match in KINDS[kind].code(context, several)]
    return _in_order(_of_wanted_versions(every, rules, context.project), rules)


def match_rules(context: FileContext, chosen: list[Rule], rules: Rules) -> tuple[list[Match], int]:
    """What the chosen rules match, and how many strings that look like CUDA are something else."""
    matches: list[Match] = []
    alone = 0
    for kind, several in _by_kind([rule for rule in chosen if rule.code not in MODES]):
        if kind == "structural":
            for rule in several:
                matches += rule.finder.code(context, rule)
        elif kind == "string":
            more, alone = KINDS[kind].code(context, several, *rules.vocabularies(context.project))
            matches += more
        else:
            matches += KINDS[kind].code(context, several)
    matches = _in_order(_of_wanted_versions(matches, rules, context.project), rules)
    if rules.settings.transfer:
        left = modes.left(context.index, matches, rules.every)
        matches = [*modes.transferred(context, rules.every[TRANSFER]), *left]
    if rules.settings.specify_device:
        matches = [*modes.with_specified_device(context, rules.every[SPECIFY_DEVICE]), *matches]
    return matches, alone


def _of_wanted_versions(matches: list[Match], rules: Rules, project: Project) -> Iterator[Match]:
    """The matches without those of rules for versions of a library that the project does not ask for.

    Where its requirements allow such versions and others, or name none, they are reported without a fix.
    """
    for item in matches:
        library = rules.every[item.finding.code].library
        holds = _holds(library, project.requirements) if library else True
        if holds:
            yield item
        elif holds is None and item.edits:
            reason = _("the requirements do not say whether it is {library}", library=library)
            yield without_fix(item, reason, "warning")
        elif holds is None:
            yield item


def _holds(library: str, requirements: tuple[str, ...]) -> Optional[bool]:
    """Whether the requirements ask for a version such as ``transformers <4.51``; None where that is open."""
    if not requirements:
        return None
    from migrator.project.wanted_versions import limits_hold, wanted_of

    name, conditions = library.split(" ", 1)
    limits = wanted_of(requirements, frozenset({name})).get(name)
    return None if limits is None else limits_hold(conditions, limits)


def _by_kind(chosen: list[Rule]) -> Iterable[tuple[str, list[Rule]]]:
    kinds: dict[str, list[Rule]] = {}
    for rule in chosen:
        kinds.setdefault(rule.kind, []).append(rule)
    return kinds.items()


def _in_order(matches: Iterable[Match], rules: Rules) -> list[Match]:
    """The matches by precedence: few are unlike, so that a key for each would take memory and time."""
    alike: dict[tuple[bool, int, bool, int], list[Match]] = {}
    for item in matches:
        rule = rules.every[item.finding.code]
        # What structural rules replace as a whole is theirs; then comes what is most specific.
        key = rule.kind not in ("structural", QUERY), *rank(rule, item.finding.api), rules.order[rule.code]
        alike.setdefault(key, []).append(item)
    return [item for key in sorted(alike) for item in alike[key]]


class Choice(NamedTuple):
    """The findings of one pass: those whose fixes are ``made``, those only ``reported``, the imports to add.

    ``waiting`` have to wait for the next pass, or were dropped for another one. No node is kept: the tree is
    not needed any more.
    """

    made: list[Finding]
    reported: list[Finding]
    imports: list[Finding]
    waiting: list[Finding]

    def edits(self) -> list[Edit]:
        """All edits of the pass; an import comes before what else is inserted at its place and may use it."""
        return [edit for item in (*self.imports, *self.made) if item.fix for edit in item.fix.edits]


def choose_fixes(context: FileContext, matches: list[Match], admit: Admit, rules: Rules) -> Choice:
    """Which fixes are made in this pass. Takes the matches out of their list: a file may have many.

    A match whose place another one has taken waits for the next pass; one inside a place that a
    structural rule claims without a fix is dropped.
    """
    made, reported, waiting = _fitting(matches, admit)
    matches.clear()
    made, refused = _parsing(context, made)
    has_torch = imports_package(context.index, "torch") or _loads_torch(context)

    def needs_import(item: Match) -> bool:
        rule = rules.every[item.finding.code]
        alone = rules.settings.keep_cuda or rule.kind not in ("string", QUERY)
        if rule.kind == QUERY:
            alone = alone or bool(rule.options.needs_npu) or _names_torch_npu(context.index, item)
        return item.needs_npu and TORCH in rule.framework and (has_torch or alone)

    imports = _imports(context, [item for item in made if needs_import(item)], rules)
    if imports:
        made = [item for item in made if not rules.every[item.finding.code].finder.only_imports]
    shared = tuple(edit for item in imports for edit in item.edits)
    edits = [edit for item in made for edit in item.edits]
    removals = [edit for edit in edits if edit.text.strip() in ("", "pass")]
    asked = {(item.finding.api, item.finding.span) for item in reported} if made else ()
    replaced = {key for item in made if (key := (item.finding.api, item.finding.span)) in asked}
    reported = [item for item in reported if not _is_settled(item, edits, removals, replaced, rules)]
    for place, item in enumerate(made):
        fix = item.finding.fix
        if shared and fix and needs_import(item):  # at once: two findings take twice the memory of one
            made[place] = item._replace(finding=item.finding._replace(fix=fix._replace(imports=shared)))
    return Choice(*map(_findings, (made, [*reported, *refused], imports, waiting)))


def _findings(matches: list[Match]) -> list[Finding]:
    return [item.finding for item in matches]


def _loads_torch(context: FileContext) -> bool:
    """Whether a file is started and leaves torch to other files of the project, which may name no device.

    From torch 2.5 on torch loads torch_npu by itself.
    """
    if context.version.autoloads_backends or not context.is_entry():
        return False
    names = (name for node in context.index.imports for name in imported(node))
    return any(context.project.owns(name, context.name) for name in names)


def choose_fixes_in_text(matches: list[Match], admit: Admit) -> Choice:
    """Which fixes are made in this pass, in a file that is no Python."""
    made, reported, waiting = map(_findings, _fitting(matches, admit))
    return Choice(made, reported, [], waiting)


def _fitting(matches: list[Match], admit: Admit) -> tuple[list[Match], list[Match], list[Match]]:
    """The matches whose fixes can be made together, those that are only reported, and the others."""
    made: list[Match] = []
    reported: list[Match] = []
    waiting: list[Match] = []
    occupied = Occupied()
    claimed: list[tuple[int, int]] = []
    for item in matches:
        edits = item.edits
        if edits and any(start <= edits[0].start and edits[-1].end <= end for start, end in claimed):
            waiting.append(item)
            continue
        if edits and admit(item.finding):
            (made if occupied.add(edits) else waiting).append(item)
            continue
        reported.append(item)
        if item.claims is not None:
            claimed.append(item.claims)
    return made, reported, waiting


def _is_settled(
    item: Match,
    edits: list[Edit],
    removals: list[Edit],
    replaced: Collection[tuple[str, tuple[int, int]]],
    rules: Rules,
) -> bool:
    """Whether a match is moot.

    Another rule takes its place out, writes something else for the API, or understands what it calls unclear.
    """
    start, end = item.finding.span
    if (item.finding.api, (start, end)) in replaced:
        return True
    if any(edit.start <= start < end <= edit.end for edit in removals):
        return True
    if getattr(rules.every[item.finding.code].options, "verdict", "") != "unclear":
        return False
    return any(start <= edit.start and edit.end <= end for edit in edits)


def _parsing(context: FileContext, made: list[Match]) -> tuple[list[Match], list[Match]]:
    """The fixes that together give a file that parses, and those that do not fit this Python's syntax."""
    if not any(enclosing_fstring(context.index, item.node) for item in made):
        return made, []  # only inside f-strings does the syntax depend on what stands around
    if _parses(context, made):
        return made, []
    fitting = [item for item in made if _parses(context, [item])]
    reason = _("the new string does not fit into the f-string")
    refused = [without_fix(item, reason, "warning") for item in made if item not in fitting]
    return fitting, refused


def _parses(context: FileContext, items: list[Match]) -> bool:
    edits = [edit for item in items for edit in item.edits]
    try:
        parse(apply(context.index.data, edits).decode("utf-8"))
    except SyntaxError:
        return False
    return True


def _names_torch_npu(index: ModuleIndex, item: Match) -> bool:
    """Whether a fix writes ``torch_npu.…`` where that has to be a name: elsewhere than in an import."""
    writes = any(edit.text.startswith("torch_npu.") for edit in item.edits)
    return writes and not isinstance(index.statement_of(item.node), (ast.Import, ast.ImportFrom))


def _imports(context: FileContext, needing: list[Match], rules: Rules) -> list[Match]:
    """``import torch_npu`` for the fixes that need it."""
    rule = rules.import_rule
    if rule is None or not needing:
        return []
    nodes = [item.node for item in needing]
    if rules.settings.keep_cuda:
        from migrator.core.keep_cuda import module_imports  # few runs need it

        return module_imports(context, rule, nodes)
    named = any(_names_torch_npu(context.index, item) for item in needing)
    places = torch_npu_imports(context.index, nodes, context.version.replaces_names, named=named)
    return [insertion(context, rule, node, edit) for node, edit in places]
