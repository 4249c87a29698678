"""The one way through a file: a document in, its findings and the text with all admitted fixes out.

Fixes that do not overlap are made together, the new text is looked at again, until no rule has a fix left:
so checking a result again changes nothing. Most files need one pass.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable
from functools import partial
from typing import Optional

from migrator.core.changes import Change, described, of_conversion, planned
from migrator.core.fix_guards import guarded, guarded_text, judged, kept
from migrator.core.matching import (
    Admit,
    Choice,
    choose_fixes,
    choose_fixes_in_text,
    match_rules,
    match_rules_in_text,
)
from migrator.core.readable import OddNameError, async_arguments, check_compiles, check_names
from migrator.core.rules import Rules
from migrator.files.document import Document
from migrator.files.source import Lines, Source
from migrator.findings.edits import OffsetMap, apply
from migrator.findings.finding import Edit, Finding, Fix, Result, SyntaxTrouble, internal_error
from migrator.language import N_, _
from migrator.light import NamedTuple
from migrator.matchers.context import FileContext, TextContext
from migrator.matchers.packs import Rule
from migrator.names.conditions import knows_npus
from migrator.names.index import ModuleIndex
from migrator.names.large import LARGE
from migrator.names.outline import forget_outline, uncollected
from migrator.project.project import Project

_MAX_PASSES = 8
_OLD_CALL = "NPU183"
_NUL = N_("holds NUL bytes: not a Python source file")
_DEEP = N_("an expression is nested too deeply to parse")


class Converted(NamedTuple):
    """What a conversion (to many NPUs, from Horovod) makes of a file before the rules see it.

    ``failed`` is the internal error for which the file is left unchanged, not even migrated.
    """

    before: str
    edits: tuple[Edit, ...] = ()
    findings: tuple[Finding, ...] = ()
    failed: Optional[Result] = None

    @property
    def text(self) -> str:
        """The converted text."""
        return apply(self.before.encode("utf-8"), self.edits).decode("utf-8")


def every_fix(_finding: Finding) -> bool:
    """Admits all fixes."""
    return True


def no_fix(_finding: Finding) -> bool:
    """Admits none: what is found in the text as it is."""
    return False


def safe_fixes(finding: Finding) -> bool:
    """Admits the fixes that nobody has to look at."""
    return finding.safely_fixable


def check(
    document: Document,
    rules: Rules,
    project: Project,
    admit: Admit = every_fix,
    converted: Optional[Converted] = None,
    write: bool = True,
) -> Result:
    """What the rules find in a document, and its text with all fixes that ``admit`` wants.

    Findings have their places in ``document.text``; ``admit`` says of one, by its place in the input,
    whether its fix is made. Without ``write`` the text is not asked for, and no fix is marked as made.
    Never raises but for KeyboardInterrupt: a file that cannot be parsed, or on which a rule fails, comes
    back unchanged with the reason.
    """
    name, text = document.name, document.text
    if name in project.failed:
        return project.failed[name]
    try:
        with uncollected():
            if document.type:
                return _check_other(document, rules, project, admit, write)
            if converted is None and write and _names_async(text):
                converted = _with_old_calls(document, rules, admit)
            edits = converted.edits if converted else ()
            start = apply(text.encode("utf-8"), edits).decode("utf-8") if edits else text
            check_names(start, rules)
            chosen, words = rules.starting(start, project, name)
            if not chosen and converted is None:
                return Result(name)
            way = _Check(document, rules, project, admit)
            result = way.run(start, chosen, words, converted, write)
            if result.findings:
                _check_compiles(document, result, way.tree)
            return result
    except SyntaxError as error:
        return unparsed(name, text, error)
    except (RecursionError, MemoryError):
        return Result(name, skipped=_(_DEEP), syntax=(SyntaxTrouble(0, _(_DEEP)),))
    except Exception as error:
        if isinstance(error, ValueError) and "null byte" in str(error):
            return Result(name, skipped=_(_NUL))
        return internal_error(name, error)


def _with_old_calls(document: Document, rules: Rules, admit: Admit) -> Optional[Converted]:
    """What makes calls of torch 0.3 readable; None where nobody wants that."""
    rule, lines = rules.every[_OLD_CALL], document.lines
    edits = tuple(async_arguments(lines, document.text)) if _OLD_CALL in rules.enabled else ()
    findings = []
    for edit in edits:
        place, fix = lines.ends((edit.start, edit.end)), Fix((edit,), "unsafe", made=True)
        finding = Finding(rule.code, rule.message, *place, rule.severity, rule.name, "async")
        findings.append(finding._replace(fix=fix, span=(edit.start, edit.end)))
    return Converted(document.text, edits, tuple(findings)) if edits and all(map(admit, findings)) else None


def _check_compiles(document: Document, result: Result, tree: Optional[ast.Module] = None) -> None:
    """Raises SyntaxError where Python does not accept the input, or the result after an internal error.

    What is wrong with the input is wrong with the result, too: most files are compiled once. ``tree`` is the
    input's, which takes less than to parse it again.
    """
    mark = document.notebook.mark if document.notebook else ""
    try:
        text, own = (document.text, tree) if result.text is None else (result.text, None)
        check_compiles(text, mark, own)
    except SyntaxError:
        check_compiles(document.text, mark)
        raise


def _check_other(document: Document, rules: Rules, project: Project, admit: Admit, write: bool) -> Result:
    """``check`` for a file other than Python; one that is not of its type stays, with the reason."""
    from migrator.other_files.index import NotParsedError, has_reader  # a hook rarely needs it

    chosen = rules.of_other_files(document.text, project) if has_reader(document.type) else []
    result = Result(document.name)
    if chosen:
        try:
            result = _Check(document, rules, project, admit).run(document.text, chosen, (), None, write)
        except NotParsedError as error:
            place = _("line {line}: ", line=error.line) if error.line else ""
            about = {"place": place, "type": document.type, "error": error}
            left = _("{place}not parsed as {type} ({error}): left unchanged", **about)
            result = Result(document.name, left=left)
    return result._replace(type=document.type)


class _Check:
    """One file on its way through the passes."""

    def __init__(self, document: Document, rules: Rules, project: Project, admit: Admit) -> None:
        self.name = document.name
        self.type = document.type
        self.text = document.text
        self.rules = rules
        self.project = project
        self.admit = admit
        self.lines = document.lines
        self.map = OffsetMap()
        self.tree: Optional[ast.Module] = None  # the input's, of one that is not large
        self.neighbours = project.neighbours(document.name)
        self.known: dict[tuple[str, int, str], Finding] = {}  # what the first pass has a fix for

    def run(
        self, text: str, chosen: list[Rule], words: Iterable[str], converted: Optional[Converted], write: bool
    ) -> Result:
        """The passes over a text, which is the document's or what a conversion made of it."""
        left_alone = 0
        findings: list[Finding] = []
        made: list[Finding] = []
        changes: list[Change] = []
        aware = knows_npus(text)
        if converted is not None:
            self.map = self.map.then(converted.edits)
        for step in range(_MAX_PASSES):
            try:
                lines, choice, alone = self._pass(text, chosen, words, aware)
            finally:
                forget_outline(text)
            if step == 0:
                left_alone = alone
                users = (each for each in choice.reported if not self._is_ours(lines, each))
                findings += map(self._located, users)
            if not choice.made:
                break
            own = (item for item in (*choice.made, *choice.imports) if not self._is_inserted(item))
            if write:
                changes += [planned(self._in_input(item), item, lines, self.map) for item in own]
            else:
                made += [self._in_input(item) for item in own]
            edits, is_first = choice.edits(), not self.map.steps
            self.map = self.map.then(edits)
            text = apply(lines.data, edits).decode("utf-8")
            # What was torch_npu.distributed is known to the rules as torch.distributed only now.
            renamed = any(item.api.startswith("torch_npu.") for item in choice.made)
            starts = renamed or self.rules.start_in(" ".join(edit.text for edit in edits), chosen)
            if not self.type and not starts and _renames(chosen, choice.made):
                now, now_words = self.rules.starting(text, self.project, self.name)
                if not {rule.code for rule in now} <= {rule.code for rule in chosen}:  # from the new names
                    chosen, words, starts = now, now_words, True
            if not choice.waiting and not starts:
                if write and self.type:  # an internal error must not break the user's file
                    from migrator.other_files.index import read

                    read(self.name, self.type, text)
                break
            if is_first:
                every = (*choice.waiting, *choice.reported, *choice.made)
                self.known = {_key(item): item for item in every if item.fix}
        else:
            reason = _("internal error, file left unchanged: the rules do not reach a fixed point")
            return Result(self.name, skipped=reason)
        if write:
            result = Lines(text)
            findings += [described(change, self.lines, result, self.map) for change in changes]
            if converted:
                where = converted.edits, self.lines, result, self.map
                findings += (of_conversion(finding, *where) for finding in converted.findings)
        findings += made
        changed = text if write and text != self.text else None
        unique = dict.fromkeys(findings)
        in_order = sorted(unique, key=lambda finding: (finding.line, finding.column, finding.code))
        return Result(self.name, tuple(in_order), changed, left_alone=left_alone)

    def _pass(
        self, text: str, chosen: list[Rule], words: Iterable[str], aware: bool
    ) -> tuple[Lines, Choice, int]:
        """What to do in one pass, and how many strings are something else than they look like."""

        def admit(finding: Finding) -> bool:
            return self.admit(self._located(finding))

        if self.type:
            from migrator.other_files.index import read

            other = TextContext(
                read(self.name, self.type, text),
                self.rules.version,
                self.project,
                self.rules.settings.hardware,
                partial(self.rules.vocabularies, self.project),
                lambda code: check(Document(b"", Source("", code)), self.rules, self.project).text,
            )
            matches, alone = guarded_text(other, match_rules_in_text(other, chosen, self.rules)), 0
            if self.rules.settings.keep_cuda:
                from migrator.core.keep_cuda.fixes import left_in_text

                matches = left_in_text(matches)
            choice, lines = choose_fixes_in_text(matches, admit), other.index.lines
        else:
            own = self.lines if text is self.text else None
            index = ModuleIndex(text, words, neighbours=self.neighbours, lines=own)
            if own and len(text) <= LARGE:
                self.tree = index.tree
            definitions = self.project.definitions
            context = FileContext(
                self.name,
                index,
                self.rules.version,
                self.project,
                partial(definitions.kind_of, self.name, index) if definitions else None,
                self.rules.settings.hardware,
                partial(self.rules.vocabularies, self.project),
            )
            forget_outline(text)  # what only other indexes of the text would need of it
            matches, alone = match_rules(context, chosen, self.rules)
            matches = kept(context.index, matches)
            if self.rules.settings.keep_cuda:
                from migrator.core.keep_cuda.fixes import shared  # few runs need it

                matches = shared(context, matches, self.rules.every, aware)
            else:
                matches = guarded(context, matches, aware)
            matches = judged(context.index, matches, partial(self.project.way_to, self.name))
            choice, lines = choose_fixes(context, matches, admit, self.rules), context.index.lines
        return lines, choice, alone

    def _is_ours(self, lines: Lines, finding: Finding) -> bool:
        """Whether a finding is about what a conversion wrote, and not about what the user has there."""
        start, end = finding.span
        replaced = self.map.replaced(start)
        return replaced is not None and lines.data[start:end] not in self.lines.data[slice(*replaced)]

    def _is_inserted(self, finding: Finding) -> bool:
        """Whether a finding lies in what a fix or a conversion inserted, whose own row has the final text."""
        start, end = finding.span
        return start < end and self.map.back(start) == self.map.back(end)

    def _located(self, finding: Finding) -> Finding:
        """The finding with its place in the input."""
        if not self.map.steps:
            return finding
        start, end = map(self.map.back, finding.span)
        (line, column), last = self.lines.place(start), self.lines.place(max(start, end))
        found = finding._replace(span=(start, end), line=line, column=column)
        return found._replace(end_line=last[0], end_column=last[1])

    def _in_input(self, found: Finding) -> Finding:
        """A finding with its place in the input and edits about it; what only a later pass finds has none."""
        finding = self._located(found)
        if not self.map.steps or finding.fix is None:
            return finding
        first = self.known.get(_key(finding))
        if first is not None and finding.fix.operation != "INSERT":
            return first
        return finding._replace(fix=finding.fix._replace(edits=(), imports=()))


def _renames(chosen: Iterable[Rule], made: Iterable[Finding]) -> bool:
    """Whether fixes wrote other names of torch than the file had."""
    about_names = {rule.code for rule in chosen if rule.finder.words_from == "torch_names"}
    fixes = (item.fix.edits for item in made if item.code in about_names and item.fix)
    return any(edit.text for edits in fixes for edit in edits)


def _key(finding: Finding) -> tuple[str, int, str]:
    return finding.code, finding.span[0], finding.message


def _names_async(text: str) -> bool:
    """Whether a text calls something with ``async=``, which is in no Python from 3.7 on."""
    return "async" in text and re.search(r"[(,]\s*async\s*=(?!=)", text) is not None


def unparsed(name: str, text: str, error: SyntaxError) -> Result:
    """The message for a file that is not valid Python, with its line."""
    if "null byte" in (error.msg or ""):
        return Result(name, skipped=_(_NUL))
    running = ".".join(map(str, sys.version_info[:2]))
    hint, of_python_2 = "", r"^\s*print\s+[^(\s=]|^\s*except\s+\w+\s*,\s*\w+\s*:"
    if "print" in (error.msg or "") or re.search(of_python_2, text, re.M):
        hint = _("; Python 2 code? Convert it to Python 3 first")
    elif _names_async(text):
        hint = _("; async is a keyword of Python 3.7; a migration writes non_blocking in calls of tensors")
    elif re.search(r"^\s*(match|case)\s.+:|^\s*type\s+\w+\s*=|except\*", text, re.M):
        hint = _("; syntax of a newer Python? Run npumigrate with that one")
    message = error.msg
    if not isinstance(error, OddNameError):
        message = _("not valid Python {running} ({msg}){hint}", running=running, msg=error.msg, hint=hint)
    place = _("line {lineno}: ", lineno=error.lineno) if error.lineno else ""
    return Result(name, skipped=place + message, syntax=(SyntaxTrouble(error.lineno or 0, message),))
