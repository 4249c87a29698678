"""A lint run from end to end: the files in, findings out, fixes made."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Optional

from migrator.files.errors import shown
from migrator.findings.finding import Finding, longest_beginning
from migrator.language import _, ngettext
from migrator.lint import baseline
from migrator.lint.checking import Job, check_files, read_files
from migrator.lint.files import Target
from migrator.lint.options import Options, counting, severity_at_least
from migrator.lint.texts import Texts
from migrator.project.frameworks import TORCH, described
from migrator.run.cache import Cache
from migrator.run.loading import Loader
from migrator.run.processes import Progress


class CommandLine(NamedTuple):
    """What was said to ``npumigrate lint``; ``given`` has the options that a configuration can hold, too."""

    paths: tuple[str, ...]
    given: Mapping[str, Any]
    config: Sequence[str] = ()
    isolated: bool = False
    diff: bool = False
    add_noqa: bool = False
    ignore_noqa: bool = False
    write_baseline: str = ""
    diff_base: str = ""
    output_file: str = ""
    no_cache: bool = False
    stdin_filename: str = ""
    jobs: Optional[int] = None
    statistics: bool = False
    exit_zero: bool = False
    exit_non_zero_on_fix: bool = False
    show_settings: bool = False
    show_files: bool = False
    color: str = "auto"
    quiet: bool = False
    silent: bool = False
    watch: bool = False


@dataclass
class Outcome:
    """What was found, and what was done about it.

    ``found`` holds what counts, with places as in the files; ``texts`` knows their lines.
    ``troubles`` are lines about files that could not be looked at. ``versions`` are those of torch that the
    findings are for, each with the requirement that asks for it. ``changed`` has the old and the
    new bytes of files that were, or with ``diff`` would be, fixed, and ``fixed`` how often each rule was.
    """

    texts: Texts
    found: list[Finding] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    fixed: dict[str, Mapping[str, int]] = field(default_factory=dict)
    changed: dict[str, tuple[bytes, bytes]] = field(default_factory=dict)


def run(
    line: CommandLine,
    options: Options,
    targets: Sequence[Target],
    native: Sequence[tuple[str, Path]],
    cache: Cache,
    progress: Progress,
) -> Outcome:
    """Look at all files, and do what was asked for with the findings.

    ``native`` are the C++ and CUDA files around them, by their names inside the project.
    Raises ConfigError for a baseline, a revision or a choice of rules that cannot be used,
    CannotWrite where a file cannot be written.
    """
    changed = known = None
    if line.diff_base:
        from migrator.lint.changed_lines import changed_lines

        changed = changed_lines(line.diff_base, Path.cwd())
    if options.baseline and not line.write_baseline:
        known = baseline.read(Path(options.baseline))
    outcome = Outcome(Texts({target.place: target.data for target in targets if target.data is not None}))
    trouble = outcome.troubles.append
    loader = Loader(cache, native, line.jobs)
    files = read_files(targets, loader, not line.ignore_noqa, trouble, progress)
    looked_at: list[tuple[Job, Sequence[Finding]]] = []
    found: dict[str, list[Finding]] = {}  # all that are grave enough, by file
    for (job, _data), checked in zip(files, check_files(files, loader, cache, line.jobs, trouble, progress)):
        target = job.target
        outcome.versions.setdefault(job.rules.settings.version, target.options.version_why)
        if checked.trouble:
            trouble(f"{shown(target.path)}: {checked.trouble}")
        else:
            looked_at.append((job, checked.found))
        found[target.path] = counting(checked.found, target.options)
        outcome.found += found[target.path]
    if loader.native_failed:
        from migrator.lint.file import failed

        for name, path in native:
            if name in loader.native_failed:
                trouble(f"{shown(path)}: {failed(loader.native_failed[name]).trouble}")
    if set(loader.frameworks) - {TORCH}:
        outcome.notes.append(_("Frameworks: {names}", names=described(loader.frameworks)) + ".")
    if changed is not None:
        outcome.found = [item for item in outcome.found if changed.touches(item)]
    if line.write_baseline:
        file = Path(line.write_baseline)
        count = baseline.write(file, outcome.found, outcome.texts.lines)
        outcome.notes.append(_("Wrote {count} to {file}.", count=_findings(count), file=shown(file)))
        outcome.found = []
        return outcome
    if known is not None:
        _leave_out(known, Path(options.baseline), outcome, looked_at, whole=changed is None)
    if line.add_noqa or options.fix or options.fix_only or line.diff:
        _change(line, options, outcome, files, found, loader)
    return outcome


def _change(
    line: CommandLine,
    options: Options,
    outcome: Outcome,
    files: Sequence[tuple[Job, bytes]],
    every: Mapping[str, Sequence[Finding]],
    loader: Loader,
) -> None:
    """Add comments for what counts, or fix it; ``every`` has all that is grave enough, by file."""
    from migrator.lint.fixing import Changes

    changes = Changes(outcome, loader, line.diff)
    own: dict[str, list[Finding]] = {}
    for item in outcome.found:
        own.setdefault(item.file, []).append(item)
    outcome.found, added = [], 0
    for job, _data in files:
        path = job.target.path
        if path not in own:
            continue
        if line.add_noqa:
            added += changes.add_noqa(job.target, own[path])
        else:
            shown_here = set(own[path])
            hidden = [item for item in every[path] if item not in shown_here]
            outcome.found += changes.fix(job, own[path], hidden, options.unsafe_fixes)
    if line.add_noqa:
        outcome.notes.append(ngettext("Added {n} noqa comment.", "Added {n} noqa comments.", added))


def _leave_out(
    known: baseline.Known,
    file: Path,
    outcome: Outcome,
    looked_at: Sequence[tuple[Job, Sequence[Finding]]],
    whole: bool,
) -> None:
    """Take what a baseline holds out of the findings; ``whole``: and tell what of it is gone."""
    name, root = shown(os.path.relpath(file)), file.absolute().parent
    lines = outcome.texts.lines
    new, left = baseline.split(outcome.found, known, lines, root)
    matched = len(outcome.found) - len(new)
    outcome.found = new
    if matched:
        outcome.notes.append(
            _("{matched} known from {name} left out.", matched=_findings(matched), name=name)
        )
    if not whole or not left:
        return
    slight = [  # what --severity leaves out is still there
        item
        for job, found in looked_at
        for item in found
        if not severity_at_least(item.severity, job.target.options.severity)
    ]
    left = baseline.split(slight, left, lines, root)[1]
    by_name = {baseline.name_in(job.target.path, root): (job, found) for job, found in looked_at}

    def looked_for(name: str, code: str) -> bool:
        if name not in by_name:
            return False
        from migrator.lint.file import SYNTAX
        from migrator.lint.rule_sets import rules_of

        job, found = by_name[name]
        broken = any(item.code == SYNTAX for item in found)
        ignored = longest_beginning(job.ignored, code) >= 0
        return not broken and code in rules_of(job.rules).enabled and not ignored

    gone = baseline.gone(left, root, looked_for)
    if gone:
        outcome.notes.append(
            ngettext(
                "{n} finding of {name} is gone: write it again with --write-baseline.",
                "{n} findings of {name} are gone: write it again with --write-baseline.",
                gone,
                name=name,
            )
        )


def _findings(count: int) -> str:
    return ngettext("{n} finding", "{n} findings", count)
