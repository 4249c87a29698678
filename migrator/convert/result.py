"""What became of a program for one card, and how it is migrated."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field, replace

from migrator.findings.edits import apply
from migrator.findings.finding import Edit, FileResult, Finding


@dataclass(frozen=True)
class Converted:
    """One file of the program: the edits that convert it (none where it stays), and the findings."""

    before: str
    edits: tuple[Edit, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def text(self) -> str:
        """The file's text for many cards."""
        return apply(self.before.encode("utf-8"), self.edits).decode("utf-8")


@dataclass(frozen=True)
class Conversion:
    """What became of a program. ``files`` are those that changed or of which there is something to say.

    ``reason`` says why it is not converted, empty where it is; ``already``: it was for many cards before.
    """

    entry: str
    files: dict[str, Converted] = field(default_factory=dict)
    reason: str = ""
    already: bool = False

    def line(self) -> str:
        """What the user reads of it."""
        if self.already:
            return f"{self.entry} is distributed already: it is only migrated"
        if self.reason:
            lines = "manual_review.csv has the lines to write"
            return f"{self.entry} stays a program for one card: {self.reason} ({lines})"
        changed = sum(bool(one.edits) for one in self.files.values())
        return f"{self.entry} trains on many cards; files changed for that: {changed}"


def with_conversion(migrated: FileResult, converted: Converted) -> FileResult:
    """The result of migrating a converted text, with its findings at the lines of the input."""
    lines = _lines(converted.before, converted.text)
    found = []
    for finding in migrated.findings:
        first = lines[min(finding.line, len(lines)) - 1]
        last = lines[min(finding.end_line, len(lines)) - 1]
        found.append(replace(finding, line=first, end_line=max(first, last)))
    text = None if migrated.skipped else migrated.text or converted.text
    return replace(migrated, text=text, findings=(*converted.findings, *found))


def _lines(before: str, after: str) -> list[int]:
    """For each line of the new text the one of the old that it comes from, or behind which it was put."""
    old, new = before.splitlines(), after.splitlines()
    result = [1] * (len(new) or 1)
    for tag, old_first, old_last, new_first, new_last in difflib.SequenceMatcher(
        None, old, new, False
    ).get_opcodes():
        for number in range(new_first, new_last):
            offset = number - new_first if tag in ("equal", "replace") else 0
            result[number] = max(1, min(old_first + offset + (tag != "insert"), max(old_last, 1)))
    return result
