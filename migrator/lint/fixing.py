"""What a lint run writes into the files: the fixes of what was shown, and comments that suppress findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from migrator.core.cells import first_line
from migrator.core.check import check
from migrator.files.document import Document, document, encoded
from migrator.files.errors import CannotWrite, Unreadable, shown
from migrator.files.replacing import replace_file
from migrator.files.source import read_bytes
from migrator.findings.edits import Occupied, apply
from migrator.findings.finding import Edit, Finding, internal_error
from migrator.language import _
from migrator.lint import baseline
from migrator.lint.checking import Job, rules_of
from migrator.lint.file import check_document
from migrator.lint.files import Target, data_of
from migrator.lint.options import counting, may_be_fixed
from migrator.lint.suppressions import UNUSED, added_noqa, added_to_text
from migrator.project.project import Project
from migrator.report.log_file import keep_details
from migrator.run.loading import Loader

if TYPE_CHECKING:
    from migrator.lint.run import Outcome


@dataclass(frozen=True)
class Fixed:
    """The new text, and how many findings of each rule were fixed. ``trouble`` says why nothing was."""

    text: str
    counts: Mapping[str, int] = field(default_factory=dict)
    trouble: str = ""


def fix_document(job: Job, item: Document, project: Project, found: Sequence[Finding], unsafe: bool) -> Fixed:
    """Fix what ``found`` holds of a document, and nothing else: what a person was not shown is not changed.

    The fixes are those of a migration, in passes until there is none left; a fix that another one made
    necessary is made with it. Without ``unsafe`` only the safe ones are made.
    """
    rules, lines = rules_of(job.rules), item.lines
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
        return Fixed(item.text, trouble=result.skipped)
    counts = Counter(finding.code for finding in result.findings if finding.fixed)
    text = result.text or item.text
    if any(finding.code == UNUSED for finding in found):
        left = check_document(job, document(encoded(item, text), item.name), project).found
        text, removed = with_fixes(text, [finding for finding in left if finding.code == UNUSED])
        counts[UNUSED] += removed
    return Fixed(text, {code: count for code, count in counts.items() if count})


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


@dataclass(frozen=True)
class Changes:
    """Changes files, or with ``dry`` only says how; the ``outcome`` is told of each."""

    outcome: Outcome
    loader: Loader
    dry: bool

    def add_noqa(self, target: Target, found: Sequence[Finding]) -> int:
        """Add a comment for each finding; gives the number of rows that got one."""
        with self._telling(target):
            item = document(data_of(target), target.name)
            if item.type:
                text, rows = added_to_text(item, found)
            else:
                text, rows = added_noqa(item.text, found, lambda finding: first_line(item, finding))
            if self._write(target, item, text):
                return rows
        return 0

    def fix(
        self, job: Job, found: Sequence[Finding], hidden: Sequence[Finding], unsafe: bool
    ) -> Sequence[Finding]:
        """Make the fixes, the safe ones or the unsafe ones too; gives the findings that remain.

        ``hidden`` are the file's findings that do not count.
        """
        target, texts = job.target, self.outcome.texts
        remaining: Sequence[Finding] = ()
        with self._telling(target):
            item = document(data_of(target), target.name)
            remaining = found
            if not any(finding.fix and (unsafe or finding.safely_fixable) for finding in found):
                return found
            # Known, or on a line that is none of this run's.
            not_counting = baseline.known(hidden, texts.lines, Path())
            wanted = [finding for finding in found if may_be_fixed(finding, target.options)]
            done = fix_document(job, item, self.loader.project, wanted, unsafe)
            if done.trouble:
                self.outcome.troubles.append(
                    _("{path}: not fixed: {trouble}", path=shown(target.path), trouble=done.trouble)
                )
            elif self._write(target, item, done.text):
                self.outcome.fixed[target.path] = done.counts
                data = self.outcome.changed[target.path][1]
                texts.change(target.place, data)
                left = check_document(job, document(data, target.name), self.loader.project).found
                return baseline.split(counting(left, target.options), not_counting, texts.lines, Path())[0]
        return remaining

    @contextmanager
    def _telling(self, target: Target) -> Iterator[None]:
        """Tell why a file is not changed."""
        try:
            yield
        except Unreadable as error:
            self.outcome.troubles.append(
                _("{path}: not changed: {error}", path=shown(target.path), error=error)
            )
        except CannotWrite as error:
            self.outcome.troubles.append(str(error))
        except Exception as error:
            failed = internal_error(target.name, error)
            self.outcome.troubles.append(
                f"{shown(target.path)}: {failed.skipped}; {keep_details(failed.trace)}"
            )

    def _write(self, target: Target, item: Document, text: str) -> bool:
        """Put a new text into its file; says whether anything changed. Raises Unreadable and CannotWrite."""
        data = encoded(item, text)
        if data == item.data:
            return False
        if not self.dry and target.data is None:
            if read_bytes(target.place) != item.data:
                raise Unreadable("it was changed in the meantime")
            replace_file(target.place, data, target.top or target.options.root)
        self.outcome.changed[target.path] = (item.data, data)
        return True
