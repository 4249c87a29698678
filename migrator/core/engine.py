"""The engine: a file's text in, findings and the migrated text out."""

from __future__ import annotations

import gc
import re
import sys
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property, partial
from typing import Callable, Optional

from migrator.api_support import versions
from migrator.core.fix_guards import enclosing_fstring, restrained, unfixed, without_fix
from migrator.core.settings import Settings
from migrator.core.transfer import add_transfer
from migrator.findings.edits import Taken, apply, back_mapping
from migrator.findings.finding import Edit, FileResult, Finding
from migrator.matchers.context import FileContext, Match, insertion, source_lines
from migrator.matchers.dotted import rank
from migrator.matchers.kinds import argument, call, env, library, method, name, pattern, string, text
from migrator.matchers.npu_import import names_package, torch_npu_imports
from migrator.matchers.packs import Load, Rule, applies, choose, ignores, load, load_all
from migrator.matchers.starting_words import line_words, starting_words
from migrator.matchers.structural import api_verdicts
from migrator.names.hints import PlaceData
from migrator.names.index import ModuleIndex, identifiers
from migrator.names.npu_branches import knows_npus
from migrator.names.tree import parse
from migrator.names.values import Elsewhere
from migrator.names.written_names import read_names
from migrator.project.facts import scan_file
from migrator.project.project import Project, merge_facts

__all__ = ["Engine", "merge_facts", "scan_file"]

_MAX_PASSES = 8
_NUL = "holds NUL bytes: not a Python source file"
_IMPORT_RULE = "NPU901"
_FROM_PROJECT = ("cuda_operators", "library_functions")
_TRANSFER_RULE = "NPU902"


# Says of a finding, with its place in the input, whether its fix may be made.
Admit = Callable[[Finding], bool]


class Engine:
    """The chosen rules for one torch version; ``load`` reads rule packs.

    Raises RuleError for a bad rule pack or selection, UnknownVersion for a
    torch version that the API database does not know.
    """

    def __init__(self, settings: Settings, load: Load = load) -> None:
        self.settings = settings
        self.version = versions.resolve(settings.version)
        every = load_all(settings.rule_files, (*settings.select, *settings.ignore), load)
        self.rules: dict[str, Rule] = {rule.code: rule for rule in every}
        chosen = choose(every, settings.select, settings.ignore)
        self._rules = [rule for rule in chosen if applies(rule, self.version.tuple)]
        self._order = {rule.code: place for place, rule in enumerate(every)}
        self.opt_in = any(rule.opt_in for rule in self._rules)
        self.enabled = frozenset(rule.code for rule in self._rules)
        self._words = {rule.code: starting_words(rule) for rule in self._rules}
        self._line_words: dict[str, frozenset[str]] = {}  # of names that only the project knows
        self._all_words = frozenset().union(*self._words.values()) if self._words else frozenset()
        self._project: Project | None = None

    @cached_property
    def _places(self) -> tuple[PlaceData, PlaceData]:
        return string.place_data(rule for rule in self.rules.values() if rule.kind == "string")

    def _learn(self, project: Project) -> None:
        """Start from names that only the project knows too."""
        if project is not self._project:
            self._project = project
            for rule in self._rules:
                source = rule.finder.words_from
                if source in _FROM_PROJECT:
                    self._words[rule.code] = project.words(source)
                    self._line_words[rule.code] = project.line_words(source)

    def is_relevant(self, text: str) -> bool:
        """Whether a text holds a word from which some rule starts."""
        if self.settings.transfer:
            return "torch" in text
        return not self._all_words.isdisjoint(identifiers(text))

    def migrate_text(
        self, file: str, text: str, project: Project, admit: Optional[Admit] = None
    ) -> FileResult:
        """Migrate one file's text.

        ``admit`` says of a finding, by its place in the input, whether its fix may
        be made; without it all are. Never raises but for KeyboardInterrupt: a file
        that cannot be parsed, or on which the engine fails, comes back unchanged
        with the reason.
        """
        if self.settings.transfer:
            return self._guarded(file, text, lambda: self._transfer(file, text, project))
        rules, words = self._starting(text, project)
        if not rules:
            return FileResult(file)
        return self._guarded(file, text, lambda: self._migrate(file, text, rules, words, project, admit))

    def inspect_text(self, file: str, text: str, project: Project) -> FileResult:
        """What the rules find in a text as it is. A finding that has a fix keeps its safety and edits.

        Raises what ``migrate_text`` raises.
        """
        rules, words = self._starting(text, project)
        if not rules:
            return FileResult(file)
        return self._guarded(file, text, lambda: self._inspect(file, text, rules, words, project))

    def check_text(self, file: str, text: str, project: Project) -> FileResult:
        """What ``migrate_text`` would change or report, without changing anything.

        The edits of each finding are about the input, and hold the import of
        torch_npu where the fix needs one. Raises nothing, as ``migrate_text``.
        """
        rules, words = self._starting(text, project)
        if not rules:
            return FileResult(file)
        return self._guarded(file, text, lambda: self._check(file, text, rules, words, project))

    def _starting(self, text: str, project: Project) -> tuple[list[Rule], frozenset[str]]:
        """The rules that may match in a text, and the words from which they start in it."""
        self._learn(project)
        written = read_names(text)
        words = written.words
        rules = [rule for rule in self._rules if not self._words[rule.code].isdisjoint(words)]
        apis = frozenset[str]()
        if any(_judges_apis(rule) for rule in rules):
            apis = api_verdicts.starting_words(self.version, self.settings.hardware, text, written)
        rules = [rule for rule in rules if (apis if _judges_apis(rule) else self._file_fits(rule, words))]
        return rules, apis.union(self._triggers(rules)) if rules else apis

    def _inspect(
        self, file: str, text: str, rules: list[Rule], words: frozenset[str], project: Project
    ) -> FileResult:
        index = ModuleIndex(text, words)
        context = self._context(file, index, project, _elsewhere(file, index, project))
        matches, alone = self._match(context, rules)
        accepted, rest = self._accept(restrained(index, matches, knows_npus(text)))
        findings = [replace(item.finding, operation="") for item in (*accepted, *rest)]
        return FileResult(file, findings=_in_order(findings), left_alone=alone)

    def _transfer(self, file: str, text: str, project: Project) -> FileResult:
        context = self._context(file, ModuleIndex(text, {"torch"}), project)
        return add_transfer(context, self.rules[_TRANSFER_RULE])

    def _context(
        self, file: str, index: ModuleIndex, project: Project, elsewhere: Optional[Elsewhere] = None
    ) -> FileContext:
        return FileContext(file, index, self.version, project, elsewhere, self.settings.hardware)

    def _file_fits(self, rule: Rule, words: set[str]) -> bool:
        """Rules may ask for words that a file has, or has not."""
        wanted, unwanted = rule.options.file_has, rule.options.file_has_not
        if wanted and words.isdisjoint(wanted):
            return False
        return not unwanted or words.isdisjoint(unwanted)

    def _guarded(self, file: str, text: str, work: Callable[[], FileResult]) -> FileResult:
        # A tree is built at once and goes at once: looking for garbage meanwhile costs a quarter more.
        collecting = gc.isenabled()
        gc.disable()
        try:
            return work()
        except SyntaxError as error:
            return FileResult(file, skipped=_syntax_reason(error, text))
        except (RecursionError, MemoryError):
            return FileResult(file, skipped="an expression is nested too deeply to be parsed")
        except Exception as error:
            if isinstance(error, ValueError) and "null byte" in str(error):
                return FileResult(file, skipped=_NUL)
            import traceback

            reason = f"internal error, file left as it was: {error!r}"
            return FileResult(file, skipped=reason, trace=traceback.format_exc())
        finally:
            if collecting:
                gc.enable()

    def _check(
        self, file: str, text: str, rules: list[Rule], words: frozenset[str], project: Project
    ) -> FileResult:
        """The first pass; the others only where a fix has to wait for another one."""
        context = self._context(file, ModuleIndex(text, words), project)
        matches, left_alone = self._match(context, rules)
        matches = restrained(context.index, matches, knows_npus(text))
        accepted, rest = self._accept(matches)
        accepted, refused = self._parsing(context, accepted)
        imports = self._imports(context, accepted)
        more = tuple(edit for item in imports for edit in item.finding.edits)
        needing = self._needing(context, accepted) if more else []
        with_import = {id(item) for item in needing}
        # The import alone is of no use: it goes with the fixes that need it.
        safety = "safe" if any(item.finding.safety == "safe" for item in needing) else "unsafe"

        def fixable(item: Match) -> Finding:
            edits = item.finding.edits + (more if id(item) in with_import else ())
            return replace(item.finding, edits=edits)

        if len(accepted) + len(rest) + len(refused) == len(matches) and not self._may_go_on(accepted):
            findings = [fixable(item) for item in accepted]
            findings += [replace(item.finding, safety=safety) for item in imports]
            findings += [item.finding for item in (*rest, *refused)]
            return FileResult(file, findings=_in_order(findings), left_alone=left_alone)
        # What is found in the end, with the fix that the first pass has for it.
        first = {_key(item.finding): fixable(item) for item in matches}
        settled = self._migrate(file, text, rules, words, project)
        findings = []
        for finding in settled.findings:
            if finding.operation == "INSERT":
                findings.append(replace(finding, edits=more, safety=safety))
            else:
                findings.append(first.get(_key(finding)) or replace(finding, edits=()))
        return replace(settled, text=None, findings=_in_order(findings))

    def _may_go_on(self, accepted: list[Match]) -> bool:
        """Whether what is written now has words from which rules start, and so may need another pass."""
        new = identifiers(" ".join(edit.text for item in accepted for edit in item.finding.edits))
        return any(
            not new.isdisjoint(self._words[rule.code]) for rule in self._rules if not _judges_apis(rule)
        )  # verdicts on APIs have no fixes

    def _migrate(
        self,
        file: str,
        text: str,
        rules: list[Rule],
        words: frozenset[str],
        project: Project,
        admit: Optional[Admit] = None,
    ) -> FileResult:
        """Apply fixes in passes until no rule has one left: then a second migration changes nothing."""
        findings: list[Finding] = []
        aware = knows_npus(text)
        original = index = ModuleIndex(text, words)
        back: Callable[[int], int] = _same
        left_alone = 0
        for step in range(_MAX_PASSES):
            context = self._context(file, index, project)
            matches, alone = self._match(context, rules)
            matches = restrained(index, matches, aware)
            if admit is not None:
                matches = [item for item in matches if admit(_located(item.finding, original, back))]
            accepted, rest = self._accept(matches)
            accepted, refused = self._parsing(context, accepted)
            if step == 0:
                left_alone = alone
                findings += [unfixed(item.finding) for item in (*rest, *refused)]
            if not accepted:
                break
            made = [*accepted, *self._imports(context, accepted)]
            edits = [edit for item in made for edit in item.finding.edits]
            by_line = _by_line(index, edits)
            findings += [_described(item, index, by_line, original, back) for item in made]
            new_text = apply(index.data, edits).decode("utf-8")
            back = _chain(back, back_mapping(edits))
            index = ModuleIndex(new_text, words)
        else:
            return FileResult(file, skipped="internal error, file left as it was: the rules do not settle")
        changed = index.text if index.text != text else None
        return FileResult(file, changed, _in_order(findings), left_alone=left_alone)

    def _parsing(self, context: FileContext, accepted: list[Match]) -> tuple[list[Match], list[Match]]:
        """The fixes that together give a file that parses, and those that do not fit this Python's syntax."""

        def parses(items: list[Match]) -> bool:
            edits = [edit for item in items for edit in item.finding.edits]
            try:
                parse(apply(context.index.data, edits).decode("utf-8"))
            except SyntaxError:
                return False
            return True

        if not accepted or not any(enclosing_fstring(context.index, item.node) for item in accepted):
            return accepted, []  # only inside f-strings does the syntax depend on what stands around
        if parses(accepted):
            return accepted, []
        fitting = [item for item in accepted if parses([item])]
        reason = "the new text does not fit into the f-string"
        refused = [without_fix(item, reason, "warning") for item in accepted if item not in fitting]
        return fitting, refused

    def _triggers(self, rules: list[Rule]) -> set[str]:
        words = set().union(*(self._words[rule.code] for rule in rules if not _judges_apis(rule)))
        return words.union(*(self._line_words.get(rule.code) or line_words(rule) for rule in rules))

    def _match(self, context: FileContext, rules: list[Rule]) -> tuple[list[Match], int]:
        kinds: dict[str, list[Rule]] = {}
        for rule in rules:
            kinds.setdefault(rule.kind, []).append(rule)
        matches: list[Match] = []
        for rule in kinds.get("structural", ()):
            if rule.finder.module:
                matches += rule.finder.code(context, rule)
        for kind, finder in _FINDERS:
            if kind in kinds:
                matches += finder(context, kinds[kind])
        alone = 0
        if "string" in kinds:
            more, alone = string.find(context, kinds["string"], *self._places)
            matches += more
        return sorted(matches, key=self._precedence), alone

    def _precedence(self, item: Match) -> tuple[bool, int, bool, int]:
        """What structural rules replace as a whole is theirs; then comes what is most specific."""
        rule = self.rules[item.finding.code]
        return rule.kind != "structural", *rank(rule, item.finding.api), self._order[rule.code]

    def _accept(self, matches: list[Match]) -> tuple[list[Match], list[Match]]:
        """The matches whose fixes are made now, and those that are only reported.

        A match whose place another one has taken waits for the next pass; one
        inside a place that a structural rule claims is dropped.
        """
        accepted: list[Match] = []
        rest: list[Match] = []
        taken = Taken()
        claimed: list[tuple[int, int]] = []
        for item in matches:
            edits = item.finding.edits
            if edits and any(start <= edits[0].start and edits[-1].end <= end for start, end in claimed):
                continue
            if edits and not (self.settings.safe_only and item.finding.safety == "unsafe"):
                if taken.add(edits):
                    accepted.append(item)
                continue
            rest.append(item)
            if item.claims is not None:
                claimed.append(item.claims)
        return accepted, rest

    def _imports(self, context: FileContext, accepted: list[Match]) -> list[Match]:
        """``import torch_npu`` for the fixes that need it."""
        rule = self.rules.get(_IMPORT_RULE)
        needing = [item.node for item in self._needing(context, accepted)]
        if rule is None or not needing or ignores(self.settings.select, self.settings.ignore, _IMPORT_RULE):
            return []
        places = torch_npu_imports(context.index, needing)
        return [insertion(context, rule, node, edit) for node, edit in places]

    def _needing(self, context: FileContext, accepted: list[Match]) -> list[Match]:
        has_torch = any(names_package(node, "torch") for node in context.index.imports)
        return [
            item
            for item in accepted
            if item.needs_npu
            and (has_torch or self.rules[item.finding.code].kind not in ("string", "argument"))
        ]


def _elsewhere(file: str, index: ModuleIndex, project: Project) -> Optional[Elsewhere]:
    """What asks the project's other files, where they are to be asked."""
    return partial(project.definitions.kind_of, file, index) if project.definitions else None


def _judges_apis(rule: Rule) -> bool:
    """Whether a rule judges torch APIs: in which words it starts depends on the file."""
    return rule.finder.words_from == "torch_apis"


_FINDERS: tuple[tuple[str, Callable[[FileContext, list[Rule]], Iterable[Match]]], ...] = (
    ("name", name.find),
    ("method", method.find_methods),
    ("attribute", method.find_attributes),
    ("argument", argument.find),
    ("import", library.find),
    ("env", env.find),
    ("text", text.find),
    ("call", call.find),
    ("pattern", pattern.find),
)


def _described(
    item: Match,
    index: ModuleIndex,
    by_line: dict[int, list[Edit]],
    original: ModuleIndex,
    back: Callable[[int], int],
) -> Finding:
    """A fix with the lines of the input, and with the whole lines before and after all fixes in them."""
    finding = item.finding
    finding = _located(finding, original, back, lines=False)
    start, end = index.line_span(finding.line, finding.end_line)
    first = original.line_of(back(start))
    last = max(first, original.line_of(max(back(end) - 1, back(start))))
    if finding.operation == "INSERT":
        return replace(finding, line=first, end_line=first)
    lines = range(finding.line, finding.end_line + 1)
    touched = [edit for line in lines for edit in by_line.get(line, ()) if edit.end <= end]
    before_start, before_end = original.line_span(first, last)
    return replace(
        finding,
        line=first,
        end_line=last,
        before=original.data[before_start:before_end].decode("utf-8").strip(),
        after=source_lines(index, touched, applied=True),
    )


def _located(
    finding: Finding, original: ModuleIndex, back: Callable[[int], int], lines: bool = True
) -> Finding:
    """The finding with its place in the input; with ``lines`` off, all but the lines."""
    if back is _same:
        return finding
    start, end = back(finding.span[0]), back(finding.span[1])
    placed = replace(finding, span=(start, end), column=original.column_of(start))
    if not lines:
        return placed
    return replace(placed, line=original.line_of(start), end_line=original.line_of(max(start, end - 1)))


def _by_line(index: ModuleIndex, edits: list[Edit]) -> dict[int, list[Edit]]:
    lines: dict[int, list[Edit]] = {}
    for edit in edits:
        lines.setdefault(index.line_of(edit.start), []).append(edit)
    return lines


def _in_order(findings: list[Finding]) -> tuple[Finding, ...]:
    """Each finding once, by its place."""
    unique = dict.fromkeys(findings)
    return tuple(sorted(unique, key=lambda finding: (finding.line, finding.column, finding.code)))


def _key(finding: Finding) -> tuple[str, int, str]:
    return finding.code, finding.span[0], finding.message


def _same(offset: int) -> int:
    return offset


def _chain(first: Callable[[int], int], second: Callable[[int], int]) -> Callable[[int], int]:
    return lambda offset: first(second(offset))


def _syntax_reason(error: SyntaxError, text: str) -> str:
    if "null byte" in (error.msg or ""):
        return _NUL
    running = ".".join(map(str, sys.version_info[:2]))
    place = f"line {error.lineno}: " if error.lineno else ""
    hint = ""
    if "print" in (error.msg or "") or re.search(
        r"^\s*print\s+[^(\s=]|^\s*except\s+\w+\s*,\s*\w+\s*:", text, re.M
    ):
        hint = "; Python 2 code? Convert it to Python 3 first"
    elif re.search(r"^\s*(match|case)\s.+:|^\s*type\s+\w+\s*=|except\*", text, re.M):
        hint = "; syntax of a newer Python? Run npumigrate with that one"
    return f"{place}not valid Python {running} ({error.msg}){hint}"
