"""One call of ``npumigrate lint``: from what the user wants to what is printed, and the exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from migrator.language import _, english_for_programs
from migrator.lint.config_files import Configuration, asked_folders, inline_values
from migrator.lint.files import Target, excluded, targets
from migrator.lint.options import ConfigError, Options, checked, for_file, severity_at_least, with_origin
from migrator.lint.printing import FOR_PEOPLE, FOR_PROGRAMS, print_bytes, print_outcome, print_settings
from migrator.lint.rule_sets import rule_set, rules_of
from migrator.lint.run import CommandLine, Outcome, run
from migrator.run.cache import FOLDER, Cache, tool_digest
from migrator.run.processes import Progress

CLEAN = 0
FOUND = 1
TROUBLE = 2


def configuration_of(line: CommandLine) -> Configuration:
    """The configuration that the command line asks for. Raises ConfigError."""
    inline = [text for text in line.config if "=" in text and not os.path.exists(text)]
    files = [text for text in line.config if text not in inline]
    if len(files) > 1:
        raise ConfigError("--config names more than one file")
    if files and line.isolated:
        raise ConfigError("--config FILE and --isolated exclude each other")
    values = inline_values(inline)
    for key, value in line.given.items():
        values[key] = checked(key, value, f"--{key}", Path.cwd())
    file = Path(os.path.abspath(files[0])) if files else None
    named = (line.stdin_filename,) if line.stdin_filename else line.paths
    return Configuration(values, file, line.isolated, asked_folders(named))


def lint_once(line: CommandLine, progress: Progress) -> int:
    """Lint, print, and give the exit code; ``progress`` is told how many files are looked at.

    Raises ConfigError and SourceError for what makes a run impossible.
    """
    configuration = configuration_of(line)
    options = for_file(configuration.options_for(Path.cwd()), Path.cwd(), configuration.command_line)
    _check_combinations(line, options)
    if options.output_format in FOR_PROGRAMS:
        english_for_programs()
    options = _without_fixes(line, options)
    troubles: list[str] = []
    native: list[tuple[str, Path]] = []
    data = b""
    if line.paths == ("-",):
        data = sys.stdin.buffer.read()
        files = _stdin(line, configuration, data)
    else:
        files = list(targets(line.paths, configuration, troubles.append, lambda *file: native.append(file)))
    if line.show_files or line.show_settings:
        print_settings(files, options, line)
        return _told(troubles)
    if not files:
        try:  # what is wrong with the rules or the version is told even where there is nothing to lint
            rules_of(rule_set(options, not line.ignore_noqa))
        except ValueError as error:  # RuleError, UnknownVersion, ConfigError
            raise ConfigError(with_origin(options, error)) from None
        if not troubles and not line.silent:
            print(_("npumigrate: no Python files or notebooks found under the given paths"), file=sys.stderr)
    folder = None if line.no_cache else Path(options.cache_dir or options.root / FOLDER)
    cache = Cache(folder, tool_digest() if folder else "", options.root)
    outcome = run(line, options, files, native, cache, progress)
    troubles += outcome.troubles
    if not line.silent:
        print_outcome(line, options, outcome, bool(troubles))
    if line.paths == ("-",) and (options.fix or options.fix_only) and not line.diff:
        print_bytes(next((after for _, after in outcome.changed.values()), data))
    return _exit_code(line, options, outcome, _told(troubles))


def _check_combinations(line: CommandLine, options: Options) -> None:
    if line.statistics and options.output_format not in (*FOR_PEOPLE, "json"):
        raise ConfigError(
            "--statistics prints text or json, not {output_format}", output_format=options.output_format
        )
    if line.stdin_filename and line.paths != ("-",):
        raise ConfigError("--stdin-filename needs the standard input: give - and no other path")
    if line.add_noqa and "-" in line.paths:
        raise ConfigError("--add-noqa needs files, not the standard input")
    writing = ("--add-noqa", line.add_noqa), ("--write-baseline", bool(line.write_baseline))
    asked = ((f"--{key}", bool(line.given.get(key))) for key in ("fix", "fix-only"))
    fixing = ("--diff", line.diff), *asked
    chosen = [option for option, wanted in (*writing, *fixing) if wanted]
    if len(chosen) > 1 and any(wanted for _, wanted in writing):
        raise ConfigError("{chosen} and {chosen2} exclude each other", chosen=chosen[0], chosen2=chosen[1])
    if "-" in line.paths and len(line.paths) > 1:
        raise ConfigError("- stands for the standard input, and cannot be one of several paths")


def _without_fixes(line: CommandLine, options: Options) -> Options:
    """The options without the fixes of a configuration where the command line wants none."""
    if line.add_noqa or line.write_baseline:
        return replace(options, fix=False, fix_only=False)
    if line.given.get("fix") is False and not line.given.get("fix-only"):
        return replace(options, fix_only=False)
    return options


def _stdin(line: CommandLine, configuration: Configuration, data: bytes) -> list[Target]:
    name = line.stdin_filename or "-"
    place = Path(os.path.abspath(name))
    options = configuration.options_for(place.parent)
    if line.stdin_filename and options.force_exclude and excluded(place, options):
        return []
    return [Target(name, place, for_file(options, place, configuration.command_line), data)]


def _told(troubles: Iterable[str]) -> int:
    """Print each line once; gives how many there were."""
    lines = dict.fromkeys(troubles)
    for line in lines:
        print(f"npumigrate: {line}", file=sys.stderr)
    return TROUBLE if lines else CLEAN


def _exit_code(line: CommandLine, options: Options, outcome: Outcome, trouble: int) -> int:
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
