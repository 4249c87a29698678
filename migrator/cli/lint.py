"""``npumigrate lint``: what a migration would change or report, for CI, hooks and editors."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, NoReturn, Optional

import typer

if TYPE_CHECKING:
    from migrator.lint.command import Wishes

_WRONG_USE = 2
_INTERRUPTED = 130

# typer reads annotations at run time: Optional[...] instead of "... | None", for Python 3.9.
Several = Optional[list[str]]
Switch = Optional[bool]


def lint(
    paths: Several = typer.Argument(
        None, metavar="[PATHS]...", help="Files and folders; the current folder without any, - for stdin."
    ),
    version: Optional[str] = typer.Option(
        None, "--version", "-v", metavar="VERSION", help="torch version to run on; default: the newest known."
    ),
    hw: Optional[str] = typer.Option(None, "--hw", metavar="NPU", help="NPU to run on: A1, A2, A3, 950DT."),
    fix: Switch = typer.Option(None, "--fix/--no-fix", help="Make the safe fixes, in place."),
    unsafe_fixes: Switch = typer.Option(
        None, "--unsafe-fixes/--no-unsafe-fixes", help="Make the unsafe fixes, too, with --fix or --diff."
    ),
    show_fixes: Switch = typer.Option(None, "--show-fixes/--no-show-fixes", help="List the fixes made."),
    diff: bool = typer.Option(False, "--diff", help="Print what --fix would do and write nothing."),
    fix_only: Switch = typer.Option(
        None, "--fix-only/--no-fix-only", help="Make the fixes and do not report what remains."
    ),
    output_format: Optional[str] = typer.Option(
        None, "--output-format", metavar="FORMAT", help="full (default), concise, grouped, json, …"
    ),
    output_file: Optional[str] = typer.Option(
        None, "--output-file", "-o", metavar="FILE", help="Write the findings to a file."
    ),
    select: Several = typer.Option(None, "--select", metavar="RULES", help="Only these: NPU101,NPU2 or ALL."),
    ignore: Several = typer.Option(None, "--ignore", metavar="RULES", help="Not these rules."),
    extend_select: Several = typer.Option(None, "--extend-select", metavar="RULES", help="These rules, too."),
    per_file_ignores: Several = typer.Option(
        None, "--per-file-ignores", metavar="GLOB:RULES", help="Rules not used in some files."
    ),
    rules: Several = typer.Option(None, "--rules", "-r", metavar="FILE", help="A rule pack of your own."),
    severity: Optional[str] = typer.Option(
        None, "--severity", metavar="LEVEL", help="Show nothing below error, warning or info (default)."
    ),
    fail_on: Optional[str] = typer.Option(
        None, "--fail-on", metavar="LEVEL", help="Exit with 1 from this severity on; default info."
    ),
    exclude: Several = typer.Option(
        None, "--exclude", metavar="GLOB", help="Leave out these paths; replaces the configured ones."
    ),
    extend_exclude: Several = typer.Option(
        None, "--extend-exclude", metavar="GLOB", help="Leave out these paths as well."
    ),
    respect_gitignore: Switch = typer.Option(
        None, "--respect-gitignore/--no-respect-gitignore", help="Leave out what .gitignore names (default)."
    ),
    force_exclude: Switch = typer.Option(
        None, "--force-exclude/--no-force-exclude", help="Leave out excluded files even if they are named."
    ),
    ignore_noqa: bool = typer.Option(False, "--ignore-noqa", help="Take no notice of noqa comments."),
    add_noqa: bool = typer.Option(False, "--add-noqa", help="Add a noqa comment for each finding."),
    baseline: Optional[str] = typer.Option(
        None, "--baseline", metavar="FILE", help="Leave out the findings of this file."
    ),
    write_baseline: Optional[str] = typer.Option(
        None, "--write-baseline", metavar="FILE", help="Write all findings to this file."
    ),
    diff_base: Optional[str] = typer.Option(
        None, "--diff-base", metavar="REV", help="Only findings on lines changed since a git revision."
    ),
    config: Several = typer.Option(
        None, "--config", metavar="FILE|KEY=VALUE", help="A configuration file, or one setting."
    ),
    isolated: bool = typer.Option(False, "--isolated", help="Read no configuration file."),
    no_cache: bool = typer.Option(False, "--no-cache", "-n", help="Read and write no cache."),
    cache_dir: Optional[str] = typer.Option(None, "--cache-dir", metavar="DIR", help="Folder of the cache."),
    stdin_filename: Optional[str] = typer.Option(
        None, "--stdin-filename", metavar="NAME", help="The name of what comes from stdin."
    ),
    jobs: Optional[int] = typer.Option(
        None, "--jobs", "-j", metavar="N", min=1, help="Processes; default: one a CPU for large projects."
    ),
    statistics: bool = typer.Option(False, "--statistics", help="Print how often each rule finds something."),
    watch: bool = typer.Option(False, "--watch", "-w", help="Lint again whenever a file changes."),
    exit_zero: bool = typer.Option(
        False, "--exit-zero", "-e", help="Exit with 0 even if there are findings."
    ),
    exit_non_zero_on_fix: bool = typer.Option(
        False, "--exit-non-zero-on-fix", help="Exit with 1 if something was fixed."
    ),
    show_settings: bool = typer.Option(False, "--show-settings", help="Print the settings and stop."),
    show_files: bool = typer.Option(False, "--show-files", help="Print the files to lint and stop."),
    color: str = typer.Option("auto", "--color", metavar="WHEN", help="auto, always or never."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="Print findings only."),
    silent: bool = typer.Option(False, "--silent", "-s", help="Print nothing but errors."),
) -> None:
    """Find what keeps a project from running on Ascend NPUs.

    The findings are what a migration would change or report. Settings are read from
    npumigrate.toml, or [tool.npumigrate] in pyproject.toml: the nearest to each file.

    Exit status: 0 no findings; 1 findings; 2 wrong use, or files that could not be
    looked at; 130 interrupted.
    """
    from migrator.lint.command import Wishes
    from migrator.lint.options import ConfigError
    from migrator.sources.errors import SourceError

    given = {
        "version": version,
        "hw": hw,
        "fix": fix,
        "unsafe-fixes": unsafe_fixes,
        "show-fixes": show_fixes,
        "fix-only": fix_only,
        "output-format": output_format,
        "select": _split(select),
        "ignore": _split(ignore),
        "extend-select": _split(extend_select),
        "per-file-ignores": _by_glob(per_file_ignores),
        "rules": rules,
        "severity": severity,
        "fail-on": fail_on,
        "exclude": _split(exclude),
        "extend-exclude": _split(extend_exclude),
        "respect-gitignore": respect_gitignore,
        "force-exclude": force_exclude,
        "baseline": baseline,
        "cache-dir": cache_dir,
    }
    if color not in ("auto", "always", "never"):
        _stop(f"--color {color}: is not one of auto, always, never")
    wishes = Wishes(
        paths=tuple(paths or ["."]),
        given={key: value for key, value in given.items() if value is not None},
        config=tuple(config or ()),
        isolated=isolated,
        diff=diff,
        add_noqa=add_noqa,
        noqa=not ignore_noqa,
        write_baseline=write_baseline or "",
        diff_base=diff_base or "",
        output_file=output_file or "",
        no_cache=no_cache,
        stdin_filename=stdin_filename or "",
        jobs=jobs,
        statistics=statistics,
        exit_zero=exit_zero,
        exit_non_zero_on_fix=exit_non_zero_on_fix,
        show_settings=show_settings,
        show_files=show_files,
        color=color,
        quiet=quiet,
        silent=silent,
    )
    try:
        code = _watched(wishes) if watch else _once(wishes)
    except (ConfigError, SourceError) as error:
        _stop(str(error))
    except KeyboardInterrupt:
        typer.echo("npumigrate: interrupted", err=True)
        code = _INTERRUPTED
    except BrokenPipeError:
        # The reader, such as head, has seen enough: what Python still flushes at exit must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    raise typer.Exit(code)


def _once(wishes: Wishes) -> int:
    from migrator.lint.command import lint_once

    return lint_once(wishes)


def _watched(wishes: Wishes) -> int:
    from migrator.lint.watching import lint_and_watch

    return lint_and_watch(wishes)


def _split(values: Several) -> Several:
    if values is None:
        return None
    return [part.strip() for value in values for part in value.split(",") if part.strip()]


def _by_glob(values: Several) -> Optional[dict[str, Any]]:
    """``--per-file-ignores tests/*:NPU1,docs/*:ALL`` as the configuration has it."""
    if values is None:
        return None
    globs: dict[str, Any] = {}
    glob = ""
    for part in _split(values) or ():
        before, colon, code = part.rpartition(":")
        if colon:
            glob = before
        if not glob or not code:
            _stop(f"--per-file-ignores {part}: should be GLOB:RULES, as in tests/*:NPU101")
        globs.setdefault(glob, []).append(code)
    return globs


def _stop(line: str) -> NoReturn:
    typer.echo(f"npumigrate: {line}", err=True)
    raise typer.Exit(_WRONG_USE)
