"""A lint run from end to end: the files in, findings out, fixes made."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Optional

from migrator.files.errors import shown
from migrator.findings.finding import Finding
from migrator.lint import baseline
from migrator.lint.checking import Checked, Checker, Progress, no_progress
from migrator.lint.files import Target
from migrator.lint.options import ignored_codes, severity_at_least, with_wanted_fixes
from migrator.lint.texts import Texts
from migrator.run.cache import Cache
from migrator.run.loading import Loader


@dataclass(frozen=True)
class Request:
    """What to do with the files.

    ``native`` are the C++ and CUDA files around them, by their names inside the project.
    ``data`` holds the content of files that are not read from the disk.
    """

    targets: Sequence[Target]
    native: Sequence[tuple[str, Path]] = ()
    jobs: Optional[int] = None
    diff_base: str = ""
    baseline: Optional[Path] = None
    write_baseline: Optional[Path] = None
    add_noqa: bool = False
    noqa: bool = True
    fix: str = ""  # safe | unsafe; empty: fix nothing
    diff: bool = False  # show what fixes would do instead of making them
    data: Mapping[Path, bytes] = field(default_factory=dict)


@dataclass
class Outcome:
    """What was found, and what was done about it.

    ``found`` holds what counts, with places as in the files; ``texts`` knows their lines.
    ``troubles`` are lines about files that could not be looked at. ``changed`` has the old and the
    new bytes of files that were, or with ``diff`` would be, fixed.
    """

    texts: Texts
    found: list[Finding] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    fixed: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    changed: Mapping[str, tuple[bytes, bytes]] = field(default_factory=dict)
    suppressed: int = 0
    files: int = 0


def run(request: Request, cache: Cache, progress: Progress = no_progress) -> Outcome:
    """Look at all files, and do what was asked for with the findings.

    Raises ConfigError for a baseline, a revision or a choice of rules that cannot be used,
    CannotWrite where a file cannot be written.
    """
    changed = None
    if request.diff_base:
        from migrator.lint.changed_lines import changed_lines

        changed = changed_lines(request.diff_base, Path.cwd())
    known = baseline.read(request.baseline) if request.baseline and not request.write_baseline else None
    texts = Texts(request.data)
    outcome = Outcome(texts)
    loader = Loader(cache, request.native, request.jobs)
    checker = Checker(cache, texts, loader, request.noqa, request.jobs, outcome.troubles.append)
    files = checker.readable(request.targets)
    outcome.files = len(files)
    found: dict[str, list[Finding]] = {}  # all that are grave enough, by file
    looked_at: list[tuple[Target, Checked]] = []
    for (target, _), checked in zip(files, checker.check(files, progress)):
        if checked.trouble:
            outcome.troubles.append(f"{shown(target.path)}: {checked.trouble}")
        else:
            looked_at.append((target, checked))
        outcome.suppressed += checked.suppressed
        every = with_wanted_fixes(checked.found, target.options)
        found[target.path] = [
            item for item in every if severity_at_least(item.severity, target.options.severity)
        ]
        outcome.found += found[target.path]
    if changed is not None:
        outcome.found = [item for item in outcome.found if changed.touches(item)]
    if request.write_baseline is not None:
        _write_baseline(request.write_baseline, outcome)
        return outcome
    if known is not None:
        _leave_out(known, request, outcome, looked_at, checker)
    if not request.add_noqa and not request.fix:
        return outcome
    from migrator.lint.fixing import Changes

    changes = Changes(texts, checker, loader, request.diff, outcome.troubles.append)
    counting: dict[str, list[Finding]] = {}
    for item in outcome.found:
        counting.setdefault(item.file, []).append(item)
    outcome.found, added = [], 0
    for target, _ in files:
        own = counting.get(target.path, [])
        if own and request.add_noqa:
            added += changes.add_noqa(target, own)
        elif own:
            hidden = [item for item in found[target.path] if item not in own]
            outcome.found += changes.fix(target, own, hidden, request.fix == "unsafe")
    if request.add_noqa:
        outcome.notes.append(f"Added {added} noqa {'comment' if added == 1 else 'comments'}.")
    outcome.fixed, outcome.changed = changes.fixed, changes.changed
    return outcome


def _write_baseline(file: Path, outcome: Outcome) -> None:
    count = baseline.write(file, outcome.found, outcome.texts.lines)
    outcome.notes.append(f"Wrote {_findings(count)} to {shown(file)}.")
    outcome.found = []


def _leave_out(
    known: baseline.Known,
    request: Request,
    outcome: Outcome,
    looked_at: Sequence[tuple[Target, Checked]],
    checker: Checker,
) -> None:
    """Take what the baseline holds out of the findings."""
    file = request.baseline or Path()
    name = shown(os.path.relpath(file))
    root = file.absolute().parent
    new, left = baseline.split(outcome.found, known, outcome.texts.lines, root)
    matched = len(outcome.found) - len(new)
    outcome.found = new
    if matched:
        outcome.notes.append(f"{_findings(matched)} known from {name} left out.")
    if request.diff_base or not left:
        return
    slight: list[Finding] = []  # what --severity leaves out is still there
    for target, checked in looked_at:
        least = target.options.severity
        hidden = [item for item in checked.found if not severity_at_least(item.severity, least)]
        slight += hidden
    _, left = baseline.split(slight, left, outcome.texts.lines, root)
    gone = baseline.gone(left, root, _looked_for(looked_at, checker, root))
    if gone:
        verb = "is" if gone == 1 else "are"
        outcome.notes.append(
            f"{_findings(gone)} of {name} {verb} gone: write it again with --write-baseline."
        )


def _looked_for(
    looked_at: Sequence[tuple[Target, Checked]], checker: Checker, root: Path
) -> Callable[[str, str], bool]:
    """Whether this run looked for a rule in a file, by its name in a baseline."""
    by_name = {baseline.name_in(target.path, root): (target, checked) for target, checked in looked_at}

    def looked_for(name: str, code: str) -> bool:
        if name not in by_name:
            return False
        from migrator.lint.file import SYNTAX
        from migrator.lint.rule_sets import rules_of

        target, checked = by_name[name]
        broken = any(item.code == SYNTAX for item in checked.found)
        ignored = ignored_codes(target.options, target.place)
        return not broken and code in rules_of(checker.rules(target)).enabled and not code.startswith(ignored)

    return looked_for


def _findings(count: int) -> str:
    return f"{count} {'finding' if count == 1 else 'findings'}"
