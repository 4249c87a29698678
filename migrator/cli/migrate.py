"""``npumigrate migrate``, also without its name: a CUDA project in, an NPU project out."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from migrator.cli import options
from migrator.cli.ending import DONE, INTERRUPTED, forget_stdout, stop, summary_printed
from migrator.cli.options import Given
from migrator.cli.progress import ProgressBar, log_on_terminal
from migrator.cli.report import chosen_formats, write_reports
from migrator.command_options import split
from migrator.language import N_, _

if TYPE_CHECKING:
    from migrator.migrate.run import Outcome, Plan


# This word behind SRC means --distributed.
_DISTRIBUTED = "distributed"
_EXCLUDING = (
    ("--distributed", "--mode transfer"),
    ("--replace-unsupported", "--safe-only"),
    ("--replace-unsupported", "--mode transfer"),
    ("--keep-cuda", "--distributed"),
    ("--keep-cuda", "--mode transfer"),
    ("--keep-cuda", "--replace-unsupported"),
)
# Options of pytorch_gpu2npu.sh that have another name here, or that nothing needs; their sources are in
# docs/from_pytorch_gpu2npu.md.
_RENAMED = {"--rule": "--rules", "--target_model": "--target-model"}
_MODELARTS = N_("{option} is for ModelArts: npumigrate launch modelarts writes a boot file for the result")
_ELSEWHERE = {
    "-sim": N_("use --replace-unsupported instead of {option}"),
    "--similar": N_("use --replace-unsupported instead of {option}"),
    "-a": N_("{option} is not needed: mixed precision is migrated without apex"),
    "--amp_model": N_("{option} is not needed: mixed precision is migrated without apex"),
    "--modelarts": _MODELARTS,
}


def migrate(given: Given) -> None:
    """Migrate a project for Ascend NPUs.

    SRC is not changed. The result is OUT/<name>_msft, with reports in its folder migration_report.

    Exit status: 0 done; 1 done, but some files could not be processed; 2 usage error
    or nothing done; 130 interrupted.
    """
    words = list(given.words or ())
    distributed = given.distributed or _DISTRIBUTED in words
    if _DISTRIBUTED in words:
        words.remove(_DISTRIBUTED)
    source = options.source_of(given, words, "npumigrate", writes=not given.diff)
    if given.target_model and not distributed:
        stop("-t/--target-model needs --distributed")
    transfer = given.mode == "transfer"
    options.refuse_together(
        {
            "--distributed": distributed,
            "--mode transfer": transfer,
            "--replace-unsupported": given.replace_unsupported,
            "--safe-only": given.safe_only,
            "--keep-cuda": given.keep_cuda,
        },
        *_EXCLUDING,
    )
    built = chosen_formats(given.formats)
    if built and given.diff:
        stop("--format needs a result: --diff writes none")

    # From here on the work begins, and with it the imports that take their time.
    from migrator.migrate.run import LEFT_ALONE, REPLACED, Plan, preview
    from migrator.migrate.run import migrate as run

    # A bar and a diff on one terminal would run into each other.
    silent = given.quiet or given.verbose or (given.diff and sys.stdout.isatty())
    bar = ProgressBar(shown=not silent)
    try:
        settings = options.settings_of(
            given,
            source,
            select=(split(given.select) or ("ALL",))
            + split(given.extend_select)
            + (LEFT_ALONE if given.show_left_alone else ())
            + (REPLACED if given.replace_unsupported else ()),
            transfer=transfer,
            keep_cuda=given.keep_cuda,
            specify_device=given.specify_device,
        )
        plan = Plan(
            Path(source),
            settings,
            tuple(given.exclude or ()),
            given.jobs,
            given.main,
            distributed,
            given.target_model,
            given.safe_only,
            given.docs,
            given.replace_unsupported,
        )
        with log_on_terminal(given.verbose), bar:
            if given.diff:
                outcome = preview(plan, _print_bytes, bar)
            else:
                outcome = run(plan, Path(given.output), given.overwrite, bar)
    except KeyboardInterrupt:
        said = _("interrupted")
        if bar.total:
            said += _(" after {done} of {total} files", done=bar.done, total=bar.total)
        what = _("the diff is incomplete") if given.diff else _("no result was written")
        stop(f"{said}: {what}", INTERRUPTED)
    files = write_reports(outcome.result, built, given.rules) if outcome.result and built else []
    if not given.quiet:
        _show(outcome, plan, files)
    raise typer.Exit(outcome.exit_code)


def _print_bytes(data: bytes) -> None:
    from migrator.report.colors import diff_for_terminal

    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(diff_for_terminal(data))
        sys.stdout.buffer.flush()
    except BrokenPipeError:  # typer would make an error of it
        forget_stdout()
        raise typer.Exit(DONE) from None


def _show(outcome: Outcome, plan: Plan, files: Sequence[Path]) -> None:
    from rich.console import Console

    from migrator.api_support.versions import resolve
    from migrator.cli.next_commands import after_migration, after_preview
    from migrator.launch.target import NAME
    from migrator.report.terminal import show_next, show_summary

    # A diff has the standard output to itself.
    console = Console(stderr=outcome.result is None, highlight=False)
    head = _("{source} for torch {version}", source=plan.source, version=plan.settings.version)
    if resolve(plan.settings.version).evidence == "interpolated":
        head += _(" (no data for this version: judged by its neighbours)")
    launch = outcome.launcher.line() if outcome.launcher else ""
    conversion = outcome.conversion.line() if outcome.conversion else ""
    with summary_printed():
        show_summary(
            console,
            outcome.tally,
            head,
            outcome.not_copied,
            outcome.result,
            outcome.reports,
            launch,
            conversion,
            files,
        )
        launcher = NAME if outcome.launcher and outcome.launcher.entry and not outcome.launcher.kept else ""
        if outcome.result:
            show_next(console, after_migration(outcome.result, launcher, bool(files)))
        elif outcome.tally.changes():
            show_next(console, after_preview(plan.source, plan.settings.version))


def translated(arguments: Sequence[str]) -> list[str]:
    """The words of a migration's command line with our names; stops at one that is done in another way."""
    words = []
    for place, word in enumerate(arguments):
        behind = arguments[place + 1] if place + 1 < len(arguments) else "-"
        if word in _ELSEWHERE:
            stop(_ELSEWHERE[word], option=word)
        if word == "-m" and (behind.startswith("-") or behind == "distributed"):
            stop(_MODELARTS, option="-m without a script")
        name, equals, value = word.partition("=")
        words.append(_RENAMED.get(name, name) + equals + value)
    return words
