"""All matchers over one file, and which of the fixes that they propose are made together.

Modes and options put more into the scripts that are started: --mode transfer, --specify-device.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Callable, Optional

from migrator.core.fix_guards import enclosing_fstring, without_fix
from migrator.core.rules import IMPORT, MODES, SPECIFY_DEVICE, TRANSFER, Rules
from migrator.files.source import newline_of
from migrator.findings.edits import Occupied, apply
from migrator.findings.finding import Edit, Finding
from migrator.language import _
from migrator.light import NamedTuple
from migrator.matchers.context import FileContext, Match, TextContext, insertion
from migrator.matchers.finders import KINDS, QUERY
from migrator.matchers.npu_import import (
    imports_package,
    insert_import,
    names_package,
    statement_separator,
    torch_npu_imports,
)
from migrator.matchers.packs import Rule, ignores, rank
from migrator.names.goes_to import LISTS, behind
from migrator.names.index import ModuleIndex
from migrator.names.tree import called_name, head_lines, imported, parse
from migrator.project.frameworks import TORCH
from migrator.project.project import Project

# Says of a finding, with its place in the input, whether its fix is to be made.
Admit = Callable[[Finding], bool]


def match_rules_in_text(context: TextContext, chosen: list[Rule], rules: Rules) -> list[Match]:
    """What the chosen rules match in a file that is not Python."""
    every = [match for kind, several in _by_kind(chosen) for match in KINDS[kind].code(context, several)]
    return _in_order(_of_wanted_versions(every, rules, context.project), rules)


def match_rules(context: FileContext, chosen: list[Rule], rules: Rules) -> tuple[list[Match], int]:
    """What the chosen rules match, and how many strings that look like CUDA are something else."""
    matches: list[Match] = []
    alone = 0
    for kind, several in _by_kind([rule for rule in chosen if rule.code not in MODES]):
        if not kind:
            for rule in several:
                matches += rule.finder.code(context, rule)
        elif kind == "string":
            more, alone = KINDS[kind].code(context, several, *rules.vocabularies(context.project))
            matches += more
        else:
            matches += KINDS[kind].code(context, several)
    matches = _in_order(_of_wanted_versions(matches, rules, context.project), rules)
    if rules.settings.transfer:
        left = _left(context.index, matches, rules.every)
        matches = [*_transferred(context, rules.every[TRANSFER]), *left]
    if rules.settings.specify_device:
        matches = [*_with_specified_device(context, rules.every[SPECIFY_DEVICE]), *matches]
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
    """The rules by kind; those that are looked at one by one together, by no kind."""
    kinds: dict[str, list[Rule]] = {}
    for rule in chosen:
        kinds.setdefault("" if rule.finder.each else rule.kind, []).append(rule)
    return kinds.items()


def _in_order(matches: Iterable[Match], rules: Rules) -> list[Match]:
    """The matches by precedence: few are unlike, so that a key for each would take memory and time."""
    alike: dict[tuple[bool, int, bool, int], list[Match]] = {}
    for item in matches:
        rule = rules.every[item.finding.code]
        # What queries and kinds by one rule replace as a whole is theirs; then comes what is most specific.
        first = rule.kind == QUERY or rule.finder.each
        key = not first, *rank(rule, item.finding.api), rules.order[rule.code]
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
    rule claims without a fix is dropped.
    """
    made, reported, waiting = _fitting(matches, admit)
    matches.clear()
    made, refused = _parsing(context, made)
    has_torch = imports_package(context.index, "torch")
    if not has_torch and not context.version.autoloads_backends and context.is_entry():
        # It is started, and leaves torch to other files of the project, which may name no device.
        names = (name for node in context.index.imports for name in imported(node))
        has_torch = any(context.project.owns(name, context.name) for name in names)

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


def choose_fixes_in_text(matches: list[Match], admit: Admit) -> Choice:
    """Which fixes are made in this pass, in a file that is not Python."""
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
    # The rule that imports torch_npu goes along with others, and need not be selected.
    rule, settings = rules.every.get(IMPORT), rules.settings
    if rule is None or not needing or ignores(settings.select, settings.ignore, IMPORT):
        return []
    nodes = [item.node for item in needing]
    if rules.settings.keep_cuda:
        from migrator.core.keep_cuda import module_imports  # few runs need it

        return module_imports(context, rule, nodes)
    named = any(_names_torch_npu(context.index, item) for item in needing)
    places = torch_npu_imports(context.index, nodes, context.version.replaces_names, named=named)
    return [insertion(context, rule, node, edit) for node, edit in places]


_TRANSFER = "from torch_npu.contrib import transfer_to_npu"
_VARIABLE = "DEVICE_ID"
# A rank has its NPU from the launcher. The variable counts before the first use of an NPU: above all imports.
_STATEMENTS = (
    "import os",
    'if "DEVICE_ID" in os.environ and os.environ.keys().isdisjoint({"LOCAL_RANK", "RANK", "RANK_ID"}):',
    '    os.environ.setdefault("ASCEND_RT_VISIBLE_DEVICES", os.environ["DEVICE_ID"])',
)


def _transferred(context: FileContext, rule: Rule) -> list[Match]:
    """The import of torch_npu's run-time patching for a file that is started and imports torch."""
    index = context.index
    if not context.is_entry() or not imports_package(index, "torch"):
        return []
    if any("transfer_to_npu" in index.segment(node) for node in index.imports):
        return []
    inserted = []
    for node, edit in torch_npu_imports(index, list(index.imports), context.version.replaces_names):
        both = f"import torch_npu{statement_separator(index, node)}{_TRANSFER}"
        text = edit.text.replace("import torch_npu", both)
        inserted.append(insertion(context, rule, node, edit._replace(text=text)))
    if not inserted:  # torch_npu is imported already
        there = next(node for node in index.imports if names_package(node, "torch_npu"))
        inserted.append(insertion(context, rule, there, insert_import(index, there, _TRANSFER)))
    return inserted


def _left(index: ModuleIndex, matches: list[Match], rules: Mapping[str, Rule]) -> list[Match]:
    """What is still to do when torch is patched: the matches without fixes, and fixes that it leaves out."""
    result = []
    for item in matches:
        finding = item.finding
        if finding.fix is not None and rules[finding.code].kind != "own-module":
            # Of texts it does what a fix does, but not where they are compared with a device.
            holder = behind(index, item.node, LISTS).holder
            compared = isinstance(holder, ast.Compare) or called_name(holder) in ("startswith", "endswith")
            is_text = isinstance(item.node, (ast.Constant, ast.JoinedStr))
            if rules[finding.code].transfer and not (is_text and compared):
                continue
            advice = finding.advice or _("Change it by hand, or migrate with --mode rewrite.")
            message = _("{message}; transfer_to_npu does not cover this", message=finding.message)
            finding = finding._replace(fix=None, message=message, advice=advice)
        result.append(item._replace(finding=finding))
    return result


def _with_specified_device(context: FileContext, rule: Rule) -> list[Match]:
    """The statements by which DEVICE_ID chooses the NPU, for a file that is started and imports torch.

    None where it has the variable.
    """
    index = context.index
    if not imports_package(index, "torch") or not context.is_entry() or _VARIABLE in index.text:
        return []
    docstring = ast.get_docstring(index.tree, clean=False) is not None
    body = index.tree.body[1 if docstring else 0 :]
    # There is one: the file imports torch.
    first = next(node for node in body if getattr(node, "module", "") != "__future__")
    begin, _ = index.line_span(*[head_lines(first)[0]] * 2)
    edit = Edit(begin, begin, "".join(line + newline_of(index.text) for line in _STATEMENTS))
    return [insertion(context, rule, first, edit, api=_VARIABLE)]
