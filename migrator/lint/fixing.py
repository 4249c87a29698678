"""What a lint run writes into the files: the fixes of what was shown, and comments that suppress findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from migrator.core.check import check
from migrator.files.document import Document, document, encoded
from migrator.files.errors import CannotWrite, Unreadable, shown
from migrator.files.replacing import replace_file
from migrator.files.source import read_bytes
from migrator.findings.edits import Occupied, apply
from migrator.findings.finding import Edit, Finding, internal_error
from migrator.language import _, ngettext
from migrator.lint import baseline
from migrator.lint.checking import rules_of
from migrator.lint.file import check_document
from migrator.lint.files import Outcome, Target, data_of
from migrator.lint.options import counting, may_be_fixed
from migrator.lint.suppressions import UNUSED, with_comments
from migrator.project.project import Project
from migrator.report.log_file import keep_details


def fix_document(
    target: Target, item: Document, project: Project, found: Sequence[Finding], unsafe: bool
) -> tuple[str, Mapping[str, int], str]:
    """Fix what ``found`` holds of a document, and nothing else: what a person was not shown is not changed.

    The fixes are those of a migration, in passes until there is none left; a fix that another one made
    necessary is made with it. Without ``unsafe`` only the safe ones are made. Gives the new text, how many
    findings of each rule were fixed, and why nothing was.
    """
    rules, lines = rules_of(target.rules), item.lines
    places = {(finding.code, finding.span[0]) for finding in found}
    fixed_lines = {lines.line_of(finding.span[0]) for finding in found if finding.fix}
    every = check(item, rules, project, write=False).findings
    known = {(finding.code, finding.span[0]) for finding in every}

    def wanted(finding: Finding) -> bool:
        if not (unsafe or finding.safely_fixable):
            return False
        place = finding.code, finding.span[0]
        # A later pass finds what an earlier one wrote: it goes with what was fixed there.
        return place in places or (place not in known and lines.line_of(finding.span[0]) in fixed_lines)

    result = check(item, rules, project, wanted)
    if result.skipped:
        return item.text, {}, result.skipped
    counts = Counter(finding.code for finding in result.findings if finding.fixed)
    text = result.text or item.text
    if any(finding.code == UNUSED for finding in found):
        left = check_document(target, document(encoded(item, text), item.name), project).found
        text, removed = with_fixes(text, [finding for finding in left if finding.code == UNUSED])
        counts[UNUSED] += removed
    return text, {code: count for code, count in counts.items() if count}, ""


def with_fixes(text: str, found: Sequence[Finding]) -> tuple[str, int]:
    """The text with the fixes of findings in it, and how many were made: none that would touch another."""
    occupied, edits, made = Occupied(), list[Edit](), 0
    for finding in found:
        if finding.fix is None:
            continue
        new = [edit for edit in finding.fix.all_edits if edit not in edits]  # several may need one import
        if occupied.add(new):
            edits += new
            made += 1
    return apply(text.encode("utf-8"), edits).decode("utf-8"), made


def change(
    outcome: Outcome, targets: Iterable[Target], every: Mapping[str, Sequence[Finding]], project: Project
) -> None:
    """Add comments for what counts in files, or fix it, with ``--diff`` only in the outcome.

    ``every`` has all that is grave enough, by file.
    """
    line, unsafe = outcome.line, outcome.options.unsafe_fixes
    own: dict[str, list[Finding]] = {}
    for finding in outcome.found:
        own.setdefault(finding.file, []).append(finding)
    outcome.found, added = [], 0
    for target in targets:
        found, start = own.get(target.path), len(outcome.found)
        if not found:
            continue
        try:
            item = document(data_of(target), target.name)
            if line.add_noqa:
                text, rows = with_comments(item, found)
                added += rows if _write(outcome, target, item, text) else 0
                continue
            outcome.found += found
            if any(finding.fix and (unsafe or finding.safely_fixable) for finding in found):
                left = _fix(outcome, target, item, found, every[target.path], project)
                outcome.found[start:] = left
        except Unreadable as error:
            what = _("{path}: not changed: {error}", path=shown(target.path), error=error)
            outcome.troubles.append(what)
        except CannotWrite as error:
            outcome.troubles.append(str(error))
        except Exception as error:
            failed = internal_error(target.name, error)
            what = f"{shown(target.path)}: {failed.skipped}; {keep_details(failed.trace)}"
            outcome.troubles.append(what)
    if line.add_noqa:
        outcome.notes.append(ngettext("Added {n} noqa comment.", "Added {n} noqa comments.", added))


def _fix(
    outcome: Outcome,
    target: Target,
    item: Document,
    found: Sequence[Finding],
    every: Sequence[Finding],
    project: Project,
) -> Sequence[Finding]:
    """Make the fixes of a file; gives the findings that remain."""
    # Known, or on a line that is none of this run's.
    counted, lines = set(found), outcome.texts.lines
    not_counting = baseline.known([each for each in every if each not in counted], lines, Path())
    wanted = [finding for finding in found if may_be_fixed(finding, target.options)]
    text, counts, trouble = fix_document(target, item, project, wanted, outcome.options.unsafe_fixes)
    if trouble:
        what = _("{path}: not fixed: {trouble}", path=shown(target.path), trouble=trouble)
        outcome.troubles.append(what)
    elif _write(outcome, target, item, text):
        outcome.fixed[target.path] = counts
        data = outcome.changed[target.path][1]
        outcome.texts.change(target.place, data)
        left = check_document(target, document(data, target.name), project).found
        return baseline.split(counting(left, target.options), not_counting, lines, Path())[0]
    return found


def _write(outcome: Outcome, target: Target, item: Document, text: str) -> bool:
    """Put a new text into its file; says whether anything changed. Raises Unreadable and CannotWrite."""
    data = encoded(item, text)
    if data == item.data:
        return False
    if not outcome.line.diff and target.data is None:
        if read_bytes(target.place) != item.data:
            raise Unreadable("changed in the meantime")
        replace_file(target.place, data, target.top or target.options.root)
    outcome.changed[target.path] = (item.data, data)
    return True
