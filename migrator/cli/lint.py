"""``npumigrate lint``: what a migration would change or report, for CI, hooks and editors."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Optional

from migrator.cli.options import Several, split
from migrator.cli.own_parser import Parser, UsageError, ended, fail

if TYPE_CHECKING:
    from migrator.lint.command import Wishes

_DESCRIPTION = """\
Find what keeps a project from running on Ascend NPUs.

The findings are what a migration would change or report. Settings are read from
npumigrate.toml, or [tool.npumigrate] in pyproject.toml: the nearest to each file.
"""
_EXIT_STATUS = """\
Exit status: 0 no findings; 1 findings; 2 wrong use, or files that could not be
looked at; 130 interrupted.
"""


_FORMATS = (
    "full (the default), concise, grouped, json, json-lines, sarif, "
    "github, gitlab, junit, azure, pylint, rdjson"
)


def _parser() -> Parser:
    parser = Parser("lint", "[options] [PATHS ...]", _DESCRIPTION, _EXIT_STATUS)
    switch = argparse.BooleanOptionalAction
    add = parser.add_argument
    add(
        "paths",
        nargs="*",
        metavar="PATHS",
        help="files and folders (default: the current one), or - for stdin",
    )
    add("-v", "--version", metavar="VERSION", help="torch version to run on (default: the newest known)")
    add("--hw", metavar="HW", help="what it runs on: A1, A2, A3 or 950DT (default: none in particular)")
    group = parser.add_argument_group("fixing")
    add = group.add_argument
    add("--fix", action=switch, help="make the safe fixes, in place")
    add("--unsafe-fixes", action=switch, help="make unsafe fixes, too, with --fix or --diff")
    add("--show-fixes", action=switch, help="list the fixes made")
    add("--fixable", action="append", metavar="RULES", help="make the fixes of these rules only")
    add("--unfixable", action="append", metavar="RULES", help="make no fixes of these rules")
    add("--fix-only", action=switch, help="make the fixes and do not report what remains")
    add("--diff", action="store_true", help="print what --fix would do and write nothing")
    add = parser.add_argument_group("rules").add_argument
    add("--select", action="append", metavar="RULES", help="only these: NPU101,NPU2 or ALL (the default)")
    add("--ignore", action="append", metavar="RULES", help="not these rules")
    add("--extend-select", action="append", metavar="RULES", help="these rules, too")
    add("--per-file-ignores", action="append", metavar="GLOB:RULES", help="rules not used in some files")
    add("--extend-per-file-ignores", action="append", metavar="GLOB:RULES", help="more of these")
    add("-r", "--rules", action="append", metavar="FILE", help="a rule pack of your own")
    add("--severity", metavar="LEVEL", help="show nothing below error, warning or info (the default)")
    add("--fail-on", metavar="LEVEL", help="exit with 1 from this severity on (default: info)")
    add("--ignore-noqa", action="store_true", help="take no notice of comments that suppress findings")
    add("--add-noqa", action="store_true", help="add a noqa comment for each finding")
    add("--baseline", metavar="FILE", help="leave out the findings of this file")
    add("--write-baseline", metavar="FILE", help="write all findings to this file")
    add("--diff-base", metavar="REV", help="only findings on lines changed since a git revision")
    add = parser.add_argument_group("files").add_argument
    add("--exclude", action="append", metavar="GLOB", help="leave these out; replaces the configured ones")
    add("--extend-exclude", action="append", metavar="GLOB", help="leave these out as well")
    add("--respect-gitignore", action=switch, help="leave out what .gitignore names (the default)")
    add("--force-exclude", action=switch, help="leave out excluded files even if they are named")
    add("--stdin-filename", metavar="NAME", help="the name of what comes from stdin")
    add = parser.add_argument_group("output").add_argument
    add("--output-format", metavar="FORMAT", help=_FORMATS)
    add("-o", "--output-file", metavar="FILE", help="write the findings to a file")
    add("--statistics", action="store_true", help="print how often each rule finds something")
    add("--color", choices=("auto", "always", "never"), default="auto", help="colours (default: auto)")
    add("-q", "--quiet", action="store_true", help="print findings only")
    add("-s", "--silent", action="store_true", help="print nothing but errors")
    add("--show-settings", action="store_true", help="print the settings and stop")
    add("--show-files", action="store_true", help="print the files to lint and stop")
    add("-e", "--exit-zero", action="store_true", help="exit with 0 even if there are findings")
    add("--exit-non-zero-on-fix", action="store_true", help="exit with 1 if something was fixed")
    add = parser.add_argument_group("running").add_argument
    add("--config", action="append", metavar="FILE|KEY=VALUE", help="a configuration file, or one setting")
    add("--isolated", action="store_true", help="read no configuration file")
    add("-n", "--no-cache", action="store_true", help="read and write no cache")
    add("--cache-dir", metavar="DIR", help="folder of the cache")
    add("-j", "--jobs", type=_jobs, metavar="N", help="processes; default: one a CPU for large projects")
    add("-w", "--watch", action="store_true", help="lint again whenever a file changes")
    return parser


def _jobs(text: str) -> int:
    if not text.isdigit() or text == "0":
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of processes")
    return int(text)


def lint(arguments: Sequence[str]) -> int:
    """Run ``npumigrate lint`` with its arguments and give its exit code."""
    return ended(lambda: _lint(_parser().parse_args(list(arguments))))


def _lint(given: argparse.Namespace) -> int:
    from migrator.files.errors import SourceError
    from migrator.lint.options import ConfigError

    try:
        wishes = _wishes(given)
        return _watched(wishes) if given.watch else _once(wishes)
    except (ConfigError, SourceError) as error:
        return fail(str(error))


def _wishes(given: argparse.Namespace) -> Wishes:
    from migrator.lint.command import Wishes

    _refuse_empty(given)
    settings = {
        "version": given.version,
        "hw": given.hw,
        "fix": given.fix,
        "unsafe-fixes": given.unsafe_fixes,
        "show-fixes": given.show_fixes,
        "fix-only": given.fix_only,
        "fixable": _codes("--fixable", given.fixable),
        "unfixable": _codes("--unfixable", given.unfixable),
        "output-format": given.output_format,
        "select": _codes("--select", given.select),
        "ignore": _codes("--ignore", given.ignore),
        "extend-select": _codes("--extend-select", given.extend_select),
        "per-file-ignores": _by_glob("--per-file-ignores", given.per_file_ignores),
        "extend-per-file-ignores": _by_glob("--extend-per-file-ignores", given.extend_per_file_ignores),
        "rules": given.rules,
        "severity": given.severity,
        "fail-on": given.fail_on,
        "exclude": _listed(given.exclude),
        "extend-exclude": _listed(given.extend_exclude),
        "respect-gitignore": given.respect_gitignore,
        "force-exclude": given.force_exclude,
        "baseline": given.baseline,
        "cache-dir": given.cache_dir,
    }
    return Wishes(
        paths=tuple(given.paths or ["-" if given.stdin_filename else "."]),
        given={key: value for key, value in settings.items() if value is not None},
        config=tuple(given.config or ()),
        isolated=given.isolated,
        diff=given.diff,
        add_noqa=given.add_noqa,
        noqa=not given.ignore_noqa,
        write_baseline=given.write_baseline or "",
        diff_base=given.diff_base or "",
        output_file=given.output_file or "",
        no_cache=given.no_cache,
        stdin_filename=given.stdin_filename or "",
        jobs=given.jobs,
        statistics=given.statistics,
        exit_zero=given.exit_zero,
        exit_non_zero_on_fix=given.exit_non_zero_on_fix,
        show_settings=given.show_settings,
        show_files=given.show_files,
        color=given.color,
        quiet=given.quiet,
        silent=given.silent,
    )


def _refuse_empty(given: argparse.Namespace) -> None:
    """A variable of a script that is not set is no current folder, and no wish for the default."""
    if "" in given.paths:
        raise UsageError("one of the paths is empty")
    for name, value in vars(given).items():
        if value == "" or (isinstance(value, list) and "" in value):
            raise UsageError(f"--{name.replace('_', '-')} is empty")


def _once(wishes: Wishes) -> int:
    from migrator.lint.command import lint_once

    return lint_once(wishes)


def _watched(wishes: Wishes) -> int:
    from migrator.lint.watching import lint_and_watch

    return lint_and_watch(wishes)


def _listed(values: Several) -> Optional[list[str]]:
    """None where the option was not given: then a configuration has the word."""
    return None if values is None else list(split(values))


def _codes(option: str, values: Several) -> Optional[list[str]]:
    codes = _listed(values)
    if codes == []:
        raise UsageError(f"{option} names no rule")
    return codes


def _by_glob(option: str, values: Several) -> Optional[dict[str, Any]]:
    """``--per-file-ignores tests/*:NPU1,docs/*:ALL`` as the configuration has it."""
    if values is None:
        return None
    globs: dict[str, Any] = {}
    glob = ""
    for part in split(values):
        before, colon, code = part.rpartition(":")
        if colon:
            glob = before
        if not glob or not code:
            raise UsageError(f"{option} {part}: should be GLOB:RULES, as in tests/*:NPU101")
        globs.setdefault(glob, []).append(code)
    return globs
