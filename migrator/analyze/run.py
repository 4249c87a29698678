"""An analysis from end to end: find the files, judge each as it is, write the reports. No source is written.

A mode of ``npumigrate analyze`` is an entry of ``MODES``: the rules that it runs, and which of their findings
it keeps. What it adds to the others is data:

- **A table** is an entry of ``reports/columns.yaml`` whose ``runs`` name the mode. With ``codes`` it lists
  the findings of these rules; a finding without a table of its own goes by its status to
  ``unsupported_api.csv`` or ``unknown_api.csv``, and else to ``manual_review.csv``. ``docs/reports.md``
  describes it (a test compares).
- **A rule** whose code begins as one of the mode's ``codes`` takes part without being named here.
- **A pass over the whole tree** (``whole_tree``) is given what all rules find in its files, and gives its
  rows, each with the name of its table.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from migrator.core.rules import rules_for
from migrator.core.settings import Settings
from migrator.files.discover import Entry, discover
from migrator.files.errors import shown
from migrator.files.naming import ANALYSIS_SUFFIX
from migrator.files.output import OutputTree, add, output_tree
from migrator.findings.finding import Finding, Result
from migrator.light import Frozen
from migrator.matchers.other_files import is_candidate
from migrator.project.definitions import Definitions
from migrator.project.library_functions import read_api_files
from migrator.report.csv_tables import SKIPPED, CsvTables, run_reports
from migrator.report.log_file import log_trace
from migrator.report.tally import Tally, summary_text
from migrator.run.loading import load_project
from migrator.run.processes import Progress, processes_for
from migrator.run.project_files import check_files, refuse_without_python

DONE = 0
SOME_SKIPPED = 1
INTERRUPTED = 130
_NOT_REACHED = "the analysis was interrupted before it reached this file"


_LOG = logging.getLogger("npumigrate")
# What makes a training faster, or equal to another one; a test does a few steps.
_ADVICE = ("NPU70", "NPU71", "NPU73", "NPU75", "NPU8")
_OF_TESTS = re.compile(r"(?:^|/)(?:_?test(?:s|ing)?(?:_\w+)?/|conftest\.py$|test_\w+\.py$|\w+_test\.py$)")


class Mode(Frozen):
    """One thing to look for.

    ``codes`` are beginnings of the codes of the rules that run. What a migration changes is no finding here,
    unless ``with_changes``; and of the rules in ``judged`` only what has a status counts.
    """

    codes: tuple[str, ...] = ()
    judged: tuple[str, ...] = ()
    with_changes: bool = False
    whole_tree: bool = False

    def keeps(self, finding: Finding) -> bool:
        """Whether a finding belongs to this mode."""
        if finding.safety and not self.with_changes:
            return False
        return finding.code.startswith(self.codes) or (
            finding.code.startswith(self.judged) and bool(finding.status)
        )


MODES: Mapping[str, Mode] = {
    "torch_apis": Mode(("NPU5", "NPU64", "NPU65", "NPU70", "NPU71", "NPU73"), ("NPU1", "NPU2", "NPU3")),
    "third_party": Mode(whole_tree=True),
    "affinity_apis": Mode(codes=("NPU8",), with_changes=True),
    "dynamic_shape": Mode(codes=("NPU75",)),
}


class Job(Frozen):
    """What to analyse, and how. ``settings.select`` is not used: the modes choose the rules.

    ``jobs`` is None where the user leaves it to the tool. With ``definitions`` the modes that look at files
    follow names into the project's other files.
    """

    source: Path
    settings: Settings
    modes: tuple[str, ...]
    exclude: tuple[str, ...] = ()
    api_files: tuple[Path, ...] = ()
    jobs: int | None = None
    definitions: Definitions | None = None


class Outcome(Frozen):
    """What was found. ``reports`` is the folder with the tables."""

    tally: Tally
    exit_code: int
    reports: Path


def analyze(job: Job, out: Path, overwrite: bool, progress: Progress) -> Outcome:
    """Write the reports to ``out/<name>_analysis``, which appears when all of them are there.

    Raises RuleError for rules that cannot be used, SourceError where the input
    cannot be read or the reports cannot be written.
    """
    codes = {code for mode in job.modes for code in (*MODES[mode].codes, *MODES[mode].judged)}
    settings = job.settings._replace(select=(*sorted(codes), *(["ALL"] if _at_once(job) else [])))
    rules = rules_for(settings)
    how = f"modes {', '.join(job.modes)}"
    with output_tree(job.source, out, overwrite, ANALYSIS_SUFFIX) as tree:
        tally = Tally(rules.every, job.modes)
        torch = settings.version
        with run_reports(tree.building, tree.result, job.modes, job.source, torch, how) as tables:
            tally.rows = tables.rows
            complete = _fill(tree, tables, tally, job, settings, progress)
        code = (SOME_SKIPPED if tally.skipped else DONE) if complete else INTERRUPTED
        options = {
            "input": shown(os.path.basename(os.path.abspath(job.source))),
            "mode": ",".join(job.modes),
            "ignore": list(settings.ignore),
            "rules": [shown(os.path.basename(file)) for file in settings.rule_files],
            "exclude": list(job.exclude),
        }
        text = summary_text(tally, torch, options, code)
        add(tree, "summary.json", text.encode("utf-8", "backslashreplace"))
    return Outcome(tally, code, tree.result)


def _at_once(job: Job) -> bool:
    """Whether one turn of the rules serves the modes that look at files and those that look at the tree."""
    modes = [MODES[mode] for mode in job.modes]
    together = any(mode.codes for mode in modes) and any(mode.whole_tree for mode in modes)
    # Neither concerns the tree.
    return together and not job.definitions and not job.api_files


def _fill(
    tree: OutputTree, tables: CsvTables, tally: Tally, job: Job, settings: Settings, progress: Progress
) -> bool:
    """Write the rows; gives False where Ctrl-C ended it early."""
    entries = tuple(_entries(job, tree, progress))
    refuse_without_python(entries, job.source, bool(job.exclude))
    modes = [MODES[mode] for mode in job.modes]
    checked = any(mode.codes for mode in modes)
    waiting = {shown(entry.name): None for entry in entries if entry.holds_python}
    skipped: set[str] = set()
    results: dict[str, Result] = {}
    try:
        project, size = load_project(entries, job.jobs, progress=progress)
        tally.frameworks = project.frameworks
        jobs = processes_for(size, job.jobs)
        known = replace(project, libraries=read_api_files(job.api_files), definitions=job.definitions)
        keeps = None if _at_once(job) else partial(_keep, modes)
        found = check_files(entries, settings, known, jobs, progress, keeps=keeps) if checked else ()
        for entry, done in found:
            result = done.result
            if entry.kind == "file" and not result.findings:
                continue
            waiting.pop(result.name, None)
            skipped.update([result.name] if result.skipped else [])
            if _at_once(job):
                results[result.name] = result
            _record(result, modes, tables, tally)
        waiting = {}
        tally.seen = sum(entry.kind != "file" for entry in entries)
        if any(mode.whole_tree for mode in modes):
            from migrator.analyze.third_party.tables import find  # the other modes do without a call graph

            if not _at_once(job):
                python = [entry for entry in entries if entry.kind == "python"]
                turn = check_files(python, job.settings, project, jobs, progress)
                results = {done.result.name: done.result for _, done in turn}
            for table, row in list(find(job.source, entries, results)):
                if table != SKIPPED:
                    tables.write(table, row)
                elif row["file"] not in skipped:  # by another mode
                    _record(Result(row["file"], skipped=row["reason"]), modes, tables, tally)
    except KeyboardInterrupt:
        if not checked:
            raise
        for name in waiting:
            _record(Result(name, skipped=_NOT_REACHED), modes, tables, tally)
        # No tables of modes that have to see the whole tree: empty ones would say too much.
        tally.runs = tuple(mode for mode in job.modes if not MODES[mode].whole_tree)
        tables.keep(tally.runs)
        return False
    return True


def _keep(modes: Sequence[Mode], finding: Finding) -> bool:
    return any(mode.keeps(finding) for mode in modes)


def _record(result: Result, modes: list[Mode], tables: CsvTables, tally: Tally) -> None:
    """Write what the modes keep of one file's findings, and count it."""
    left = _ADVICE if _OF_TESTS.search(result.name) else ()
    findings = (each for each in result.findings if _keep(modes, each) and not each.code.startswith(left))
    result = result._replace(findings=tuple(findings))
    if result.left and not result.findings:  # not the modes' business
        return
    tables.add(result)
    tally.add(result, changed=False)
    if result.skipped:
        _LOG.warning("%s: not analysed: %s", result.name, result.skipped)
        log_trace(result)


def _entries(job: Job, tree: OutputTree, progress: Progress) -> Iterator[Entry]:
    """The files to look at, and what could not be read."""
    seen = 0
    for entry in discover(job.source, job.exclude, tree.result):
        if entry.excluded:
            continue
        if entry.holds_python or entry.kind in ("file", "unreadable"):
            seen += 1
            progress("reading", seen, 0)
            if entry.kind != "file" or is_candidate(entry.name):
                yield entry
