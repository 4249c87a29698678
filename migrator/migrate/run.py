"""A migration from end to end: find the files, put each through the rules, write the result and the reports.

Nothing is printed here, and no text is kept: every file is read when its turn comes.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from migrator.api_support.versions import resolve
from migrator.core.check import Converted, every_fix, safe_fixes
from migrator.core.keep_cuda import NAME as SHARED_DEVICE
from migrator.core.rules import Rules, rules_for
from migrator.core.settings import Settings
from migrator.files.discover import Entry, discover
from migrator.files.document import document_type
from migrator.files.errors import CannotWrite, SourceError, Unreadable, shown, unreadable
from migrator.files.naming import EQUIVALENTS, MULTI_SUFFIX, SUFFIX, is_made
from migrator.files.output import OutputTree, add, copy, output_tree, write
from migrator.findings.finding import Result
from migrator.language import _
from migrator.launch.target import NAME as LAUNCHER
from migrator.launch.target import Launcher, add_launcher, chosen_script
from migrator.light import Frozen
from migrator.matchers.other_files import is_candidate
from migrator.migrate.added_files import Wanted, modules, modules_for, name_of_package, settled
from migrator.project.added_package import places
from migrator.project.entry import Candidate, ranked
from migrator.project.frameworks import TORCH
from migrator.project.module_names import Read
from migrator.project.offers import KEYS
from migrator.project.programs import Programs
from migrator.project.project import Project
from migrator.report.csv_tables import run_reports
from migrator.report.log_file import log_trace
from migrator.report.tally import Tally, summary_text
from migrator.run.loading import load_project
from migrator.run.processes import Progress, processes_for
from migrator.run.project_files import Done, check_files, refuse_without_python

if TYPE_CHECKING:
    from migrator.convert.distributed.convert import Conversion

DONE = 0
SOME_SKIPPED = 1

REPORTS = "migration_report"
# The rules that list strings that were judged to be no devices, no backends.
LEFT_ALONE = ("NPU995", "NPU996")
# The rules that write bundled functions for unsupported APIs.
REPLACED = ("NPU550", "NPU551")
_SUMMARY = f"{REPORTS}/summary.json"
_STARTS_RANKS = "NPU932"  # commands over MPI, of documents too
_LOCAL_RANK_RULE = "NPU210"  # makes parsers take --local_rank from the environment
_LOG = logging.getLogger("npumigrate")


class Plan(Frozen):
    """What to migrate, and how.

    ``jobs``, and ``main``, the script to start, are None where the user leaves them to the tool.
    ``distributed``: that script is for one device, and becomes one for many; ``target_model`` is what it
    calls the model, empty where that is to be found. ``safe_only``: no change is made that somebody has to
    look at. ``docs``: blocks of shell in documents are migrated, too. ``replaces``: bundled functions are
    called for unsupported APIs.
    """

    source: Path
    settings: Settings
    exclude: tuple[str, ...] = ()
    jobs: int | None = None
    main: str | None = None
    distributed: bool = False
    target_model: str = ""
    safe_only: bool = False
    docs: bool = False
    replaces: bool = False


class Outcome(Frozen):
    """What was done. ``result`` and ``reports`` are folders, None where nothing was written.

    ``not_copied`` counts tool caches, virtual environments, pipes and the like.
    """

    tally: Tally
    exit_code: int
    not_copied: int
    result: Path | None = None
    reports: Path | None = None
    launcher: Launcher | None = None
    conversion: Conversion | None = None


def migrate(plan: Plan, out: Path, overwrite: bool, progress: Progress) -> Outcome:
    """Write the migrated project to ``out/<name>_msft``, which appears when all of it is there.

    Raises RuleError for rules that cannot be used, SourceError where the input
    cannot be read or the result cannot be written.
    """
    _check_readable(plan.source)
    rules = rules_for(plan.settings)
    suffix = MULTI_SUFFIX if plan.distributed else SUFFIX
    with output_tree(plan.source, out, overwrite, suffix) as tree:
        reports = _make_report_folder(tree)
        place, torch = tree.result / REPORTS, plan.settings.version
        how = f"{plan.settings}; exclude {list(plan.exclude)}"
        tally = Tally(rules.every, _runs(rules))
        # Files of the tree that cannot be written have errors of their own.
        with run_reports(reports, place, tally.runs, plan.source, torch, how) as tables:
            tally.rows = tables.rows
            survey = _look_around(plan, rules, tree, progress)
            tally.frameworks = survey.project.frameworks
            results = _results(survey, rules, plan, progress)
            # While the launcher is made, other processes go on; one by itself checks what it has parsed then.
            first = [*islice(results, 1)] if processes_for(survey.size, plan.jobs) > 1 else []
            # The frameworks of scripts of which the project has as many files as of PyTorch.
            known, count = {start.framework for start in survey.project.starts}, tally.frameworks.get
            launcher = add_launcher(
                tree,
                survey.candidates,
                plan.main,
                survey.text_of,
                _LOCAL_RANK_RULE in rules.enabled and not plan.safe_only,
                resolve(plan.settings.version),
                sorted(each for each in known - {""} if count(each, 0) >= count(TORCH, 0)),
                lambda count: progress("finding starts", count, 0),
            )
            told: set[tuple[str, int]] = set()
            wanted = Wanted(survey.project, rules)

            def put() -> Iterator[tuple[Result, bool]]:
                for entry, done in chain(first, results):
                    result = _put(tree, entry, done) if entry.checked else done.result
                    wanted.note(entry.name, done.data, result)
                    if entry.kind == "text":
                        told.update((entry.name, each.line) for each in result.findings if not each.fixed)
                    _log_file(result, bool(done.data))
                    yield result, bool(done.data) and result is done.result

            for result, changed in settled(put(), survey.project.operators, rules):
                tables.add(result)
                tally.add(result, changed=changed)
            _LOG.info("added: %s", ", ".join(wanted.written_to(tree)) or "no files of equivalents")
            # With --keep-cuda scripts stay, and findings list what NPUs need there.
            after = _mismatches(survey, plan, tree, frozenset(told), progress)
            for result in () if plan.settings.keep_cuda else after:
                tables.add(result)
                tally.add(result, changed=False)
            _LOG.info("%d seen, %d changed, %d skipped", tally.seen, tally.changed, tally.skipped)
        code = SOME_SKIPPED if tally.skipped else DONE
        add(tree, _SUMMARY, _summary(plan, tally, code, launcher.entry))
    return Outcome(tally, code, survey.not_copied, tree.result, place, launcher, survey.conversion)


def preview(plan: Plan, show: Callable[[bytes], None], progress: Progress) -> Outcome:
    """Give ``show`` the unified diff of each file that would change; write nothing.

    Raises what ``migrate`` raises for the rules and the input.
    """
    _check_readable(plan.source)
    rules = rules_for(plan.settings)
    survey = _look_around(plan, rules, None, progress)
    tally = Tally(rules.every, _runs(rules), frameworks=survey.project.frameworks)

    def shown_in_diff() -> Iterator[tuple[Result, bool]]:
        for _source, done in _results(survey, rules, plan, progress, diff=True):
            _log_file(done.result, bool(done.data))
            if done.diff:
                show(done.diff)
            yield done.result, bool(done.data)

    for result, changed in settled(shown_in_diff(), survey.project.operators, rules):
        tally.add(result, changed=changed)
    code = SOME_SKIPPED if tally.skipped else DONE
    return Outcome(tally, code, survey.not_copied, conversion=survey.conversion)


def _runs(rules: Rules) -> tuple[str, ...]:
    """The entries of ``runs`` in reports/columns.yaml whose tables are written."""
    shown = ("left_alone",) if not set(LEFT_ALONE).isdisjoint(rules.enabled) else ()
    return ("migrate", "opt_in", *shown) if rules.opt_in else ("migrate",)


def _check_readable(source: Path) -> None:
    """Raise Unreadable where nothing could be done: in a larger input one such file is only reported."""
    try:
        if os.path.isdir(source):
            os.scandir(source).close()
        elif os.path.isfile(source):
            source.open("rb").close()
    except OSError as error:
        raise Unreadable(f"{shown(source)}: {unreadable(error)}") from error


class _Survey(Frozen):
    """What holds Python to migrate, in order; between them what could not be read or may mention CUDA.

    ``converted``: what the files become, for many devices or because they use Horovod, before they are
    migrated; ``text_of`` gives a Python file's text after that.
    """

    entries: tuple[Entry, ...]
    project: Project
    size: int
    not_copied: int
    candidates: tuple[Candidate, ...]
    text_of: Read
    conversion: Conversion | None
    converted: Mapping[str, Converted]


def _look_around(plan: Plan, rules: Rules, tree: OutputTree | None, progress: Progress) -> _Survey:
    """The first walk: copies what is not migrated, and learns what is to know before a file is changed."""
    every: list[Entry] = []
    aside: dict[int, Entry] = {}  # what is only copied, by its place among them
    not_copied = 0
    again, known = _is_result(plan.source), modules(rules)
    for seen, entry in enumerate(discover(plan.source, plan.exclude, tree.result if tree else None), 1):
        progress("reading", seen, 0)
        if entry.kind == "file" and document_type(entry.name):
            entry = replace(entry, kind="text")
        if again and (entry.name == REPORTS or entry.name.startswith(REPORTS + "/")):
            not_copied += entry.name == REPORTS
            continue
        stays = not entry.checked or entry.excluded or entry.name == LAUNCHER
        if stays or any(is_made(entry.path, module.file, module.mark) for module in known):
            aside[len(every)] = entry
            not_copied += entry.kind in ("skipped", "special")
        every.append(entry)
    told = [entry for place, entry in enumerate(every) if place not in aside or _may_mention(entry)]
    refuse_without_python(told, plan.source, bool(plan.exclude))
    left: dict[int, list[Entry]] = {}
    taken_over = _take_over(aside, tree, left)
    project, size = load_project(told, plan.jobs, True, taken_over, progress)
    entries = [each for place, entry in enumerate(every) for each in left.get(place, (entry,))]
    scripts = ranked(start for start in project.starts if start.score)
    paths = {entry.name: entry.path for entry in entries if entry.kind == "python"}

    text_of = Programs(paths).text
    conversion = _convert(plan, scripts, text_of, paths)
    converted = {} if conversion is None else conversion.files
    failed = {name: one.failed for name, one in converted.items() if one.failed}
    programs = project.programs and replace(project.programs, main=plan.main or "")
    project = replace(project, failed={**project.failed, **failed}, programs=programs)

    def text_after(name: str) -> str | None:
        one = converted.get(name)
        return one.text if one is not None and one.edits else text_of(name)

    python = [entry.name for entry in entries if entry.holds_python]
    added = {SHARED_DEVICE: SHARED_DEVICE} if plan.settings.keep_cuda else {}
    if not (plan.safe_only or added):
        added = {name: name for name in modules_for(rules, project, python, text_of)}
    others = plan.safe_only or plan.settings.keep_cuda or plan.settings.transfer  # for which nothing is added
    replaces = not others and (plan.replaces or bool(project.operators.modules))
    if added or replaces:
        where = places(python, text_of)
        if replaces:
            added[EQUIVALENTS] = name_of_package(plan.source, where)
        project = replace(project, added=added, places=where)
    return _Survey(tuple(entries), project, size, not_copied, scripts, text_after, conversion, converted)


def _convert(
    plan: Plan, candidates: Sequence[Candidate], text_of: Read, names: Collection[str]
) -> Conversion | None:
    """The conversion of the training script to many devices.

    Raises SourceError where there is none.
    """
    if not plan.distributed:
        return None
    entry = chosen_script(plan.source, plan.main, candidates)
    if not entry:
        raise SourceError(
            "no training script found in {source}: give it with -m FILE", source=shown(plan.source)
        )
    if text_of(entry) is None:
        raise SourceError("{entry} is not a Python file that can be converted", entry=shown(entry))
    from migrator.convert.distributed.convert import convert

    root = plan.source if plan.source.is_dir() else plan.source.parent
    return convert(entry, text_of, plan.target_model, root.resolve(), names)


def _may_mention(entry: Entry) -> bool:
    """Whether a file that is only copied may mention CUDA."""
    return entry.kind == "file" and not entry.excluded and is_candidate(entry.name)


def _take_over(
    aside: Mapping[int, Entry], tree: OutputTree | None, left: dict[int, list[Entry]]
) -> Iterator[None]:
    """Copy what is not migrated, one at a time; ``left`` gets what there is to say of each, by its place.

    That is nothing, the entry where it may mention CUDA or is unreadable, or why it could not be copied.
    """
    for place, entry in aside.items():
        left[place] = [entry] * (entry.kind == "unreadable" or _may_mention(entry))
        try:
            line = copy(tree, entry) if tree else entry.reason
        except Unreadable as error:
            reason = _("{error}: not copied", error=error)
            left[place] = [Entry("unreadable", entry.name, entry.path, reason=reason)]
        else:
            if line and entry.kind != "unreadable":
                _LOG.info("%s: %s", shown(entry.name), line)
        yield


def _results(
    survey: _Survey, rules: Rules, plan: Plan, progress: Progress, diff: bool = False
) -> Iterator[tuple[Entry, Done]]:
    admit = safe_fixes if plan.safe_only else every_fix
    jobs = processes_for(survey.size, plan.jobs)
    for entry, done in check_files(
        survey.entries, plan.settings, survey.project, jobs, progress, admit, survey.converted, diff
    ):
        if not entry.holds_python:
            wanted = tuple(finding for finding in done.result.findings if finding.code in rules.enabled)
            done = replace(done, result=done.result._replace(findings=wanted))
        stays = not plan.docs and document_type(entry.name)
        yield entry, _without_docs(done) if stays else done


def _without_docs(done: Done) -> Done:
    """A document that stays as it is: one finding says how many lines of its commands would change."""
    result = done.result
    changing = [each for each in result.findings if each.fix]
    findings = [each for each in result.findings if each.code == _STARTS_RANKS and not each.fix]
    if changing:
        number = len({each.line for each in changing})
        message = _("commands in this document are for CUDA (lines: {number})", number=number)
        advice = _("--docs migrates commands in documents.")
        first = changing[0]._replace(fix=None, message=message, advice=advice, severity="info", api="")
        findings.insert(0, first)
    return Done(result._replace(findings=tuple(findings)))


def _mismatches(
    survey: _Survey, plan: Plan, tree: OutputTree, told: frozenset[tuple[str, int]], progress: Progress
) -> Iterator[Result]:
    """What of the result does not fit together; an internal error here leaves the result unchanged."""
    from migrator.migrate.consistency import CODES, Trees, mismatches

    rules, texts = rules_for(plan.settings), (entry for entry in survey.entries if entry.kind == "text")
    paths = {entry.name: entry.path for entry in texts if plan.docs or not document_type(entry.name)}
    before = survey.project.programs
    if not paths or before is None or CODES.isdisjoint(rules.enabled):
        return
    after = Programs({name: tree.building / name for name in before.files})
    both = {name: (path, tree.building / name) for name, path in paths.items()}
    try:
        vocabularies = partial(rules.vocabularies, survey.project)
        keys = {row.name: row.detail[0] for row in reversed(survey.project.offers.of(KEYS))}
        for result in mismatches(Trees(before, after, both, vocabularies, told, keys), progress):
            wanted = tuple(finding for finding in result.findings if finding.code in rules.enabled)
            yield result._replace(findings=wanted)
    except Exception:
        _LOG.warning(_("internal error: scripts were not compared with programs"), exc_info=True)


def _put(tree: OutputTree, entry: Entry, done: Done) -> Result:
    try:
        if done.data:
            write(tree, entry, done.data)
        else:
            copy(tree, entry)
    except Unreadable as error:
        return Result(done.result.name, skipped=_("{error}: not copied", error=error))
    return done.result


def _make_report_folder(tree: OutputTree) -> Path:
    """The folder for the reports. Those of an input that is itself a result give way, nothing else does."""
    there = tree.source / REPORTS
    if os.path.lexists(there) and not _is_result(tree.source):
        raise CannotWrite("{there} is the folder for reports: rename it", there=shown(there))
    reports = tree.building / REPORTS
    reports.mkdir()
    return reports


def _is_result(source: Path) -> bool:
    return os.path.isfile(source / _SUMMARY)


def _summary(plan: Plan, tally: Tally, code: int, entry: str) -> bytes:
    settings = plan.settings
    options = {
        "input": shown(os.path.basename(os.path.abspath(plan.source))),
        "mode": "transfer" if settings.transfer else "rewrite",
        "keep_cuda": settings.keep_cuda,
        "specify_device": settings.specify_device,
        "hardware": settings.hardware,
        "select": list(settings.select),
        "ignore": list(settings.ignore),
        "safe_only": plan.safe_only,
        "docs": plan.docs,
        "replace_unsupported": plan.replaces,
        "rules": [shown(os.path.basename(file)) for file in settings.rule_files],
        "exclude": list(plan.exclude),
        "distributed": plan.distributed,
    }
    return summary_text(tally, settings.version, options, code, shown(entry)).encode(
        "utf-8", "backslashreplace"
    )


def _log_file(result: Result, changed: bool) -> None:
    if result.skipped:
        _LOG.warning("%s: left unchanged: %s", result.name, result.skipped)
        log_trace(result)
    elif changed:
        changes = sum(finding.fixed for finding in result.findings)
        _LOG.info(
            "%s: changes %d, for manual review %d", result.name, changes, len(result.findings) - changes
        )
    elif result.left:
        _LOG.info("%s: %s", result.name, result.left)
    else:
        _LOG.debug("%s: nothing to change", result.name)
