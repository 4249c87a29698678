"""Making the fixes of one text, and nothing else: what a person was not shown is not changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from migrator.core.engine import Engine
from migrator.findings.edits import Taken, apply
from migrator.findings.finding import Edit, Finding
from migrator.lint.check import Lines, check
from migrator.lint.diagnostic import Diagnostic
from migrator.lint.suppressions import UNUSED
from migrator.project.project import Project


@dataclass(frozen=True)
class Fixed:
    """The new text, and how many findings of each rule were fixed. ``trouble`` says why nothing was."""

    text: str
    counts: Mapping[str, int] = field(default_factory=dict)
    trouble: str = ""


def fix_text(
    engine: Engine,
    name: str,
    text: str,
    project: Project,
    shown: Sequence[Diagnostic],
    ignored: Collection[str],
) -> Fixed:
    """Fix what ``shown`` holds of the text, with an engine that makes only the fixes that are wanted.

    The fixes are those of a migration, in passes until there is none left; a fix that
    another one made necessary is made with it.
    """
    places = {(item.code, item.row, item.column) for item in shown}
    rows = {item.row for item in shown if item.fix is not None}
    lines = Lines(text)

    def wanted(finding: Finding) -> bool:
        place = lines.place(finding.span[0])
        # A later pass finds what an earlier one wrote: it goes with what was fixed there.
        return (finding.code, place.row, place.column) in places or (
            (finding.code, place.row, place.column) not in known and place.row in rows
        )

    checked = engine.check_text(name, text, project)
    known = {(item.code, *_at(lines, item)) for item in checked.findings}
    result = engine.migrate_text(name, text, project, wanted)
    if result.skipped:
        return Fixed(text, trouble=result.skipped)
    counts = Counter(item.code for item in result.findings if item.fixed)
    new = result.text or text
    if any(item.code == UNUSED for item in shown):
        remaining = check(engine, "", name, new, project, ignored)
        new, removed = apply_fixes(new, (item for item in remaining.found if item.code == UNUSED))
        counts[UNUSED] += removed
    return Fixed(new, {code: count for code, count in counts.items() if count})


def _at(lines: Lines, item: Finding) -> tuple[int, int]:
    place = lines.place(item.span[0])
    return place.row, place.column


def apply_fixes(text: str, found: Iterable[Diagnostic]) -> tuple[str, int]:
    """The text with the fixes of findings in it, and how many were made: none that would touch another."""
    lines = Lines(text)
    taken = Taken()
    edits: list[Edit] = []
    made = 0
    for item in found:
        if item.fix is None:
            continue
        own = [
            Edit(lines.offset(edit.start), lines.offset(edit.end), edit.content) for edit in item.fix.edits
        ]
        new = [edit for edit in own if edit not in edits]  # several fixes may need the same import
        if taken.add(new):
            edits += new
            made += 1
    return apply(lines.data, edits).decode("utf-8"), made
