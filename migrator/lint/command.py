"""One call of ``npumigrate lint``: from what the user wants to what is printed, and the exit code."""

from __future__ import annotations

import io
import os
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

from migrator.files.errors import shown
from migrator.files.replacing import replace_file
from migrator.lint.checking import Progress, no_progress
from migrator.lint.config_files import Configuration, inline_values
from migrator.lint.files import Target, excluded, targets
from migrator.lint.options import (
    ConfigError,
    Options,
    as_shown,
    checked,
    for_file,
    severity_at_least,
    with_origin,
)
from migrator.lint.rule_sets import rule_set
from migrator.lint.run import Outcome, Request, run
from migrator.report import colors
from migrator.report.formats import writer
from migrator.report.formats.style import summary
from migrator.report.lint_report import LintReport
from migrator.run.cache import FOLDER, Cache, tool_digest

if TYPE_CHECKING:
    from migrator.matchers.packs import Rule

CLEAN = 0
FOUND = 1
TROUBLE = 2
_FOR_PEOPLE = ("full", "concise", "grouped")


@dataclass(frozen=True)
class CommandLine:
    """What was said to ``npumigrate lint``; ``given`` has the options that a configuration can hold, too."""

    paths: tuple[str, ...] = (".",)
    given: Mapping[str, Any] = field(default_factory=dict)
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
    return Configuration(values, Path(os.path.abspath(files[0])) if files else None, line.isolated)


def lint_once(line: CommandLine, progress: Progress = no_progress) -> int:
    """Lint, print, and give the exit code; ``progress`` is told how many files are looked at.

    Raises ConfigError and SourceError for what makes a run impossible.
    """
    configuration = configuration_of(line)
    options = for_file(configuration.options_for(Path.cwd()), Path.cwd(), configuration.command_line)
    _check_combinations(line, options)
    options = _without_fixes(line, options)
    troubles: list[str] = []
    native: list[tuple[str, Path]] = []
    data: dict[Path, bytes] = {}
    if "-" in line.paths:
        files = _stdin(line, configuration, data)
    else:
        files = list(targets(line.paths, configuration, troubles.append, lambda *file: native.append(file)))
    if line.show_files or line.show_settings:
        _show(files, options, line)
        return _told(troubles)
    if not files:
        _check_rules(options, line)
        if not troubles and not line.silent:
            print("npumigrate: no Python files or notebooks found under the given paths", file=sys.stderr)
    outcome = run(_request(line, options, files, native, data), _cache(line, options), progress)
    troubles += outcome.troubles
    if not line.silent:
        _print(line, options, outcome, bool(troubles))
    if data and (options.fix or options.fix_only) and not line.diff:
        _print_stdin(outcome, data)
    return _exit_code(line, options, outcome, _told(troubles))


def _check_combinations(line: CommandLine, options: Options) -> None:
    if line.statistics and options.output_format not in (*_FOR_PEOPLE, "json"):
        raise ConfigError(f"--statistics prints text or json, not {options.output_format}")
    if line.stdin_filename and line.paths != ("-",):
        raise ConfigError("--stdin-filename is for the standard input: give - and no other path")
    if line.add_noqa and "-" in line.paths:
        raise ConfigError("--add-noqa needs files, not the standard input")
    writing = ("--add-noqa", line.add_noqa), ("--write-baseline", bool(line.write_baseline))
    asked = ((f"--{key}", bool(line.given.get(key))) for key in ("fix", "fix-only"))
    fixing = ("--diff", line.diff), *asked
    chosen = [option for option, wanted in (*writing, *fixing) if wanted]
    if len(chosen) > 1 and any(wanted for _, wanted in writing):
        raise ConfigError(f"{chosen[0]} and {chosen[1]} exclude each other")


def _without_fixes(line: CommandLine, options: Options) -> Options:
    """The options without the fixes of a configuration where the command line wants none."""
    if line.add_noqa or line.write_baseline:
        return replace(options, fix=False, fix_only=False)
    if line.given.get("fix") is False and not line.given.get("fix-only"):
        return replace(options, fix_only=False)
    return options


def _check_rules(options: Options, line: CommandLine) -> None:
    """What is wrong with the rules or the version is told even where there is nothing to lint."""
    from migrator.lint.rule_sets import rules_of
    from migrator.matchers.packs import RuleError

    try:
        rules_of(rule_set(options, not line.ignore_noqa))
    except (RuleError, ValueError) as error:  # UnknownVersion, ConfigError
        raise ConfigError(with_origin(options, error)) from None


def _stdin(line: CommandLine, configuration: Configuration, data: dict[Path, bytes]) -> list[Target]:
    if len(line.paths) > 1:
        raise ConfigError("- stands for the standard input, and cannot be one of several paths")
    name = line.stdin_filename or "-"
    place = Path(os.path.abspath(name))
    data[place] = sys.stdin.buffer.read()
    options = configuration.options_for(place.parent)
    if line.stdin_filename and options.force_exclude and excluded(place, options):
        return []
    return [Target(name, place, for_file(options, place, configuration.command_line))]


def _request(
    line: CommandLine,
    options: Options,
    files: Sequence[Target],
    native: Sequence[tuple[str, Path]],
    data: dict[Path, bytes],
) -> Request:
    fix = ""
    if options.fix or options.fix_only or line.diff:
        fix = "unsafe" if options.unsafe_fixes else "safe"
    return Request(
        targets=files,
        native=native,
        jobs=line.jobs,
        diff_base=line.diff_base,
        baseline=Path(options.baseline) if options.baseline else None,
        write_baseline=Path(line.write_baseline) if line.write_baseline else None,
        add_noqa=line.add_noqa,
        noqa=not line.ignore_noqa,
        fix=fix,
        diff=line.diff,
        data=data,
    )


def _cache(line: CommandLine, options: Options) -> Cache:
    if line.no_cache:
        return Cache(None, "")
    folder = Path(options.cache_dir) if options.cache_dir else options.root / FOLDER
    return Cache(folder, tool_digest())


# -- what is printed ----------------------------------------------------------


def _print(line: CommandLine, options: Options, outcome: Outcome, incomplete: bool) -> None:
    if line.diff:
        _print_diff(outcome, line)
        return
    for_people = options.output_format in _FOR_PEOPLE
    report = LintReport(
        findings=[] if options.fix_only else outcome.found,
        lines=outcome.texts.lines,
        edits=outcome.texts.edits,
        rules=lambda: _enabled_rules(options, not line.ignore_noqa),
        color=_colored(line),
        fixed=outcome.fixed,
        unsafe_fixes=options.unsafe_fixes,
        show_fixes=options.show_fixes,
        fix_only=options.fix_only,
        notes=outcome.notes,
        summary=not line.quiet,
        files=outcome.files,
        complete=not (incomplete or line.add_noqa or line.write_baseline),
    )
    stream = io.StringIO()
    if line.statistics:
        _write_statistics(report, options, stream)
    else:
        writer(options.output_format)(report, stream)
    text = stream.getvalue()
    if line.output_file:
        replace_file(Path(line.output_file), text.encode("utf-8", "backslashreplace"))
    elif outcome.texts.given and (options.fix or options.fix_only):
        sys.stderr.write(text)  # the standard output is the fixed text's
    else:
        sys.stdout.write(text)
        sys.stdout.flush()
    if not line.quiet and (not for_people or line.output_file or line.statistics):
        for note in outcome.notes:
            print(note, file=sys.stderr)


def _print_diff(outcome: Outcome, line: CommandLine) -> None:
    from migrator.files.unified_diff import unified_diff

    text = b"".join(unified_diff(path, before, after) for path, (before, after) in outcome.changed.items())
    if line.output_file:
        replace_file(Path(line.output_file), text)
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(text)
        sys.stdout.buffer.flush()
    count = sum(sum(counts.values()) for counts in outcome.fixed.values())
    if not line.quiet:
        would = f"Would fix {count} finding{'' if count == 1 else 's'}." if count else "No fixes to make."
        print(would, file=sys.stderr)


def _print_stdin(outcome: Outcome, data: Mapping[Path, bytes]) -> None:
    content = next(iter(data.values()))
    for _, after in outcome.changed.values():
        content = after
    sys.stdout.flush()
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def _colored(line: CommandLine) -> bool:
    if line.color != "auto" or line.output_file:
        return line.color == "always"
    return colors.wanted()


def _write_statistics(report: LintReport, options: Options, stream: io.StringIO) -> None:
    counts = Counter((item.code, item.rule) for item in report.findings)
    fixable = Counter(
        item.code for item in report.findings if item.fix and (report.unsafe_fixes or item.safely_fixable)
    )
    rows = sorted(counts.items(), key=lambda row: (-row[1], row[0]))
    if options.output_format == "json":
        import json

        content = [
            {
                "code": code,
                "name": name,
                "count": count,
                "fixable": fixable[code] > 0,
                "fixable_count": fixable[code],
            }
            for (code, name), count in rows
        ]
        stream.write(json.dumps(content, indent=2) + "\n")
        return
    width = max((len(str(count)) for _, count in rows), default=1)
    for (code, name), count in rows:
        star = "[*]" if fixable[code] == count else "[-]" if fixable[code] else "[ ]"
        stream.write(f"{count:>{width}}  {code}  {star}  {name}\n")
    stream.writelines(f"{line}\n" for line in summary(replace(report, notes=())))


def _enabled_rules(options: Options, noqa: bool) -> dict[str, Rule]:
    from migrator.lint.rule_sets import rules_of

    rules = rules_of(rule_set(options, noqa))
    return {code: rule for code, rule in sorted(rules.every.items()) if code in rules.enabled}


def _show(files: Sequence[Target], options: Options, line: CommandLine) -> None:
    if line.show_files:
        for target in files:
            print(shown(target.place))
        return
    import json

    if files:
        print(f"# Settings for {shown(files[0].place)}")
        options = files[0].options
    print(f"# from {shown(options.origin)}" if options.origin else "# no configuration file")
    from migrator.lint.options import torch_version

    for key, value in as_shown(options).items():
        if key == "version":
            value = torch_version(options)
        if isinstance(value, dict):
            inner = ", ".join(f"{json.dumps(k)} = {json.dumps(v)}" for k, v in value.items())
            print(f"{key} = {{{inner}}}")
        else:
            print(f"{key} = {json.dumps(value, ensure_ascii=False)}")


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
