"""A call of ``npumigrate lint`` from end to end: files in, fixes made, findings printed, exit code out."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from migrator.files.errors import SourceError, shown
from migrator.findings.finding import Finding, longest_beginning
from migrator.language import _, english_for_programs, ngettext
from migrator.lint.checking import check_files, read_files, rules_of
from migrator.lint.config_files import CONFIG_NAMES, Configuration, asked_folders, inline_values
from migrator.lint.files import CommandLine, Outcome, Stamp, Target, Texts, excluded, stamp, targets
from migrator.lint.options import (
    ConfigError,
    Options,
    checked,
    counting,
    for_file,
    rule_set,
    severity_at_least,
    with_origin,
)
from migrator.lint.printing import print_bytes, print_outcome, print_settings
from migrator.project.frameworks import TORCH, described
from migrator.report.formats import FOR_PEOPLE, SPOKEN
from migrator.run.cache import FOLDER, Cache, tool_digest
from migrator.run.loading import Loader
from migrator.run.processes import Progress

if TYPE_CHECKING:
    from migrator.lint.baseline import Known


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
    if options.baseline or line.write_baseline:
        from migrator.lint import baseline
    if line.diff_base:
        from migrator.lint.changed_lines import changed_lines

        changed = changed_lines(line.diff_base, Path.cwd())
    if options.baseline and not line.write_baseline:
        known = baseline.read(Path(options.baseline))
    contents = {target.place: target.data for target in targets if target.data is not None}
    outcome = Outcome(line, options, Texts(contents))
    trouble = outcome.troubles.append
    loader = Loader(cache, native, line.jobs)
    loader.is_whole = all(target.is_of_whole for target in targets)
    files = read_files(targets, loader, not line.ignore_noqa, trouble, progress)
    looked_at: list[tuple[Target, Sequence[Finding]]] = []
    found: dict[str, list[Finding]] = {}  # all that are grave enough, by file
    results = check_files(files, loader, cache, line.jobs, trouble, progress)
    for (target, _data), result in zip(files, results):
        outcome.versions.setdefault(target.rules.settings.version, target.options.version_why)
        if result.trouble:
            trouble(f"{shown(target.path)}: {result.trouble}")
        else:
            looked_at.append((target, result.found))
        found[target.path] = counting(result.found, target.options)
        outcome.found += found[target.path]
    if loader.native_failed:
        from migrator.lint.file import failed

        for name, path in native:
            if name in loader.native_failed:
                trouble(f"{shown(path)}: {failed(loader.native_failed[name]).trouble}")
    if set(loader.frameworks) - {TORCH}:
        outcome.notes.append(_("Frameworks: {names}.", names=described(loader.frameworks)))
    if changed is not None:
        outcome.found = [item for item in outcome.found if changed.touches(item)]
    if line.write_baseline:
        file = Path(line.write_baseline)
        count = baseline.write(file, outcome.found, outcome.texts.lines)
        outcome.notes.append(_("Wrote {count} to {file}.", count=_findings(count), file=shown(file)))
        outcome.found = []
        return outcome
    if known is not None:
        _leave_out(known, outcome, looked_at, whole=changed is None)
    if line.add_noqa or options.fix or options.fix_only or line.diff:
        from migrator.lint.fixing import change

        change(outcome, [target for target, _data in files], found, loader.project)
    return outcome


def _leave_out(
    known: Known, outcome: Outcome, looked_at: Sequence[tuple[Target, Sequence[Finding]]], whole: bool
) -> None:
    """Take what a baseline holds out of the findings; ``whole``: and tell what of it is gone."""
    from migrator.lint import baseline

    file = Path(outcome.options.baseline)
    name, root = shown(os.path.relpath(file)), file.absolute().parent
    lines = outcome.texts.lines
    new, left = baseline.split(outcome.found, known, lines, root)
    matched = len(outcome.found) - len(new)
    outcome.found = new
    if matched:
        outcome.notes.append(
            _("{matched} left out (listed in {name}).", matched=_findings(matched), name=name)
        )
    if not whole or not left:
        return
    slight = [  # what --severity leaves out is still there
        item
        for target, found in looked_at
        for item in found
        if not severity_at_least(item.severity, target.options.severity)
    ]
    left = baseline.split(slight, left, lines, root)[1]
    by_name = {baseline.name_in(each[0].path, root): each for each in looked_at}

    def looked_for(name: str, code: str) -> bool:
        if name not in by_name:
            return False
        from migrator.lint.file import SYNTAX

        target, found = by_name[name]
        broken = any(item.code == SYNTAX for item in found)
        ignored = longest_beginning(target.ignored, code) >= 0
        return not broken and code in rules_of(target.rules).enabled and not ignored

    gone = baseline.gone(left, root, looked_for)
    if gone:
        outcome.notes.append(
            ngettext(
                "{n} finding in {name} no longer occurs: update it with --write-baseline.",
                "{n} findings in {name} no longer occur: update it with --write-baseline.",
                gone,
                name=name,
            )
        )


def _findings(count: int) -> str:
    return ngettext("{n} finding", "{n} findings", count)


_PAUSE = 0.5  # seconds between two looks of --watch, which polls: a project's files are few enough
CLEAN = 0
FOUND = 1
TROUBLE = 2


def configuration_of(line: CommandLine) -> Configuration:
    """The configuration that the command line asks for. Raises ConfigError."""
    named = line.config or ()
    inline = [text for text in named if "=" in text and not os.path.exists(text)]
    files = [text for text in named if text not in inline]
    if len(files) > 1:
        raise ConfigError("--config names more than one file")
    if files and line.isolated:
        raise ConfigError("--config FILE and --isolated cannot be used together")
    values = inline_values(inline)
    for key, value in line.given.items():
        values[key] = checked(key, value, f"--{key}", Path.cwd())
    file = Path(os.path.abspath(files[0])) if files else None
    paths = (line.stdin_filename,) if line.stdin_filename else line.paths
    return Configuration(values, file, line.isolated, asked_folders(paths))


def lint_once(line: CommandLine, progress: Progress) -> int:
    """Lint, print, and give the exit code; ``progress`` gets the number of checked files.

    Raises ConfigError and SourceError for what makes a run impossible.
    """
    configuration = configuration_of(line)
    options = for_file(configuration.options_for(Path.cwd()), Path.cwd(), configuration.command_line)
    _check_combinations(line, options)
    if options.output_format not in SPOKEN:
        english_for_programs()
    # The command line may want none of the fixes that a configuration wants.
    if line.add_noqa or line.write_baseline:
        options = options._replace(fix=False, fix_only=False)
    elif line.given.get("fix") is False and not line.given.get("fix-only"):
        options = options._replace(fix_only=False)
    troubles: list[str] = []
    native: list[tuple[str, Path]] = []
    data = b""
    if line.paths == ("-",):
        data = sys.stdin.buffer.read()
        name = line.stdin_filename or "-"
        place = Path(os.path.abspath(name))
        own = configuration.options_for(place.parent)
        left_out = line.stdin_filename and own.force_exclude and excluded(place, own)
        target = Target(name, place, for_file(own, place, configuration.command_line), data)
        files = [] if left_out else [target]
    else:
        files = list(targets(line.paths, configuration, troubles.append, lambda *file: native.append(file)))
    if line.show_files or line.show_settings:
        print_settings(files, options, line)
        return _told(troubles)
    if not files:
        try:  # errors in the rules or the version are reported even where there is nothing to lint
            rules_of(rule_set(options, not line.ignore_noqa))
        except ValueError as error:  # RuleError, UnknownVersion, ConfigError
            raise ConfigError(with_origin(options, error)) from None
        if not troubles and not line.silent:
            print(_("npumigrate: no Python files or notebooks found under the given paths"), file=sys.stderr)
    home = options.root if options.origin else Path.cwd()
    folder = None if line.no_cache else Path(options.cache_dir or home / FOLDER)
    cache = Cache(folder, tool_digest() if folder else "", options.root)
    outcome = run(line, options, files, native, cache, progress)
    troubles += outcome.troubles
    if not line.silent:
        print_outcome(outcome, bool(troubles))
    if line.paths == ("-",) and (options.fix or options.fix_only) and not line.diff:
        print_bytes(next((after for _, after in outcome.changed.values()), data))
    return _exit_code(outcome, _told(troubles))


def lint_and_watch(line: CommandLine, progress: Progress) -> int:
    """``--watch``: lint again whenever a file changes; never returns but by KeyboardInterrupt.

    Raises ConfigError where the first run does; a configuration that breaks later is
    told, and the next change looked at.
    """
    if "-" in line.paths:
        raise ConfigError("--watch needs files, not standard input")
    lint_once(line, progress)
    state = _state(line)
    while True:
        time.sleep(_PAUSE)
        now = _state(line)
        if now == state:
            continue
        if sys.stdout.isatty():
            print("\x1b[2J\x1b[H", end="")
        try:
            lint_once(line, progress)
        except (ConfigError, SourceError) as error:
            print(f"npumigrate: {error}", file=sys.stderr)
        sys.stdout.flush()
        state = _state(line)  # fixes have changed files, too


def _state(line: CommandLine) -> Stamp:
    """Time and size of each file that decides what is found."""
    native: list[Path] = []
    try:
        configuration = configuration_of(line)
        found = list(
            targets(line.paths, configuration, lambda _: None, lambda _, place: native.append(place))
        )
    except (ConfigError, SourceError):
        found = []
    places = {target.place for target in found}.union(native)
    for options in {id(target.options): target.options for target in found}.values():
        deciding = (options.origin, *options.extended, options.baseline, *options.rules)
        places.update(Path(file) for file in deciding if file)
    for folder in {Path.cwd(), *(target.place.parent for target in found)}:
        places.update(folder / name for name in CONFIG_NAMES)
    return stamp(sorted(map(str, places)))


def _check_combinations(line: CommandLine, options: Options) -> None:
    if line.statistics and options.output_format not in (*FOR_PEOPLE, "json"):
        raise ConfigError(
            "--statistics supports text and json, not {output_format}", output_format=options.output_format
        )
    if line.stdin_filename and line.paths != ("-",):
        raise ConfigError("--stdin-filename needs standard input: give - as the only path")
    if line.add_noqa and "-" in line.paths:
        raise ConfigError("--add-noqa needs files, not standard input")
    writing = ("--add-noqa", line.add_noqa), ("--write-baseline", bool(line.write_baseline))
    asked = ((f"--{key}", bool(line.given.get(key))) for key in ("fix", "fix-only"))
    fixing = ("--diff", line.diff), *asked
    chosen = [option for option, wanted in (*writing, *fixing) if wanted]
    if len(chosen) > 1 and any(wanted for _, wanted in writing):
        raise ConfigError(
            "{chosen} and {chosen2} cannot be used together", chosen=chosen[0], chosen2=chosen[1]
        )
    if "-" in line.paths and len(line.paths) > 1:
        raise ConfigError("- is standard input and cannot be combined with other paths")


def _told(troubles: Iterable[str]) -> int:
    """Print each line once; gives how many there were."""
    lines = dict.fromkeys(troubles)
    for line in lines:
        print(f"npumigrate: {line}", file=sys.stderr)
    return TROUBLE if lines else CLEAN


def _exit_code(outcome: Outcome, trouble: int) -> int:
    line, options = outcome.line, outcome.options
    if trouble:
        return trouble
    if line.diff:
        return FOUND if outcome.changed and not line.exit_zero else CLEAN
    if outcome.fixed and line.exit_non_zero_on_fix:
        return FOUND
    if options.fix_only or line.exit_zero:
        return CLEAN
    failing = any(severity_at_least(item.severity, options.fail_on) for item in outcome.found)
    return FOUND if failing else CLEAN
