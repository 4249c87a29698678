"""``npumigrate migrate``, also without its name: a CUDA project in, an NPU project out."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Optional

import typer

from migrator.cli import options
from migrator.cli.ending import DONE, INTERRUPTED, forget_stdout, stop, summary_printed
from migrator.cli.progress import ProgressBar, log_on_terminal
from migrator.cli.report import chosen_formats, write_reports
from migrator.command_options import Several, split
from migrator.language import N_, _

if TYPE_CHECKING:
    from migrator.migrate.run import Outcome, Plan


# This word behind SRC means --distributed.
_DISTRIBUTED = "distributed"
# Options of pytorch_gpu2npu.sh that have another name here, or that nothing needs; their sources are in
# docs/from_pytorch_gpu2npu.md.
_RENAMED = {"--rule": "--rules", "--target_model": "--target-model"}
_MODELARTS = N_("{option} is for ModelArts: npumigrate launch modelarts makes a boot file for the result")
_ELSEWHERE = {
    "-sim": N_("{option} is --replace-unsupported here"),
    "--similar": N_("{option} is --replace-unsupported here"),
    "-a": N_("{option} is not needed: mixed precision is migrated as it is, without apex"),
    "--amp_model": N_("{option} is not needed: mixed precision is migrated as it is, without apex"),
    "--modelarts": _MODELARTS,
}


def migrate(
    words: Several = None,
    source: Optional[str] = None,
    output: Optional[str] = None,
    version: Optional[str] = None,
    hardware: Optional[str] = None,
    select: Several = None,
    extend_select: Several = None,
    ignore: Several = None,
    safe_only: bool = False,
    docs: bool = False,
    show_left_alone: bool = False,
    rules: Several = None,
    exclude: Several = None,
    main: Optional[str] = None,
    distributed: bool = False,
    target_model: str = "",
    overwrite: bool = False,
    diff: bool = False,
    mode: str = "rewrite",
    replace_unsupported: bool = False,
    specify_device: bool = False,
    keep_cuda: bool = False,
    formats: Several = None,
    jobs: Optional[int] = None,
    quiet: bool = False,
    verbose: bool = False,
) -> None:
    """Migrate a project for Ascend NPUs.

    SRC stays as it is; the result is OUT/<name>_msft, with reports in its folder
    migration_report.

    Exit status: 0 done; 1 done, but some files could not be processed; 2 usage error
    or nothing done; 130 interrupted.
    """
    words = list(words or ())
    if _DISTRIBUTED in words:
        words.remove(_DISTRIBUTED)
        distributed = True
    source = options.one_source(words, source)
    needed = {"SRC, or -i/--input": source}
    if not diff:
        needed["-o/--output"] = output
    options.refuse_missing(needed, "npumigrate")
    if target_model and not distributed:
        stop("-t/--target-model needs --distributed")
    if distributed and mode == "transfer":
        stop("--distributed and --mode transfer exclude each other")
    if replace_unsupported and (safe_only or mode == "transfer"):
        other = "--safe-only" if safe_only else "--mode transfer"
        stop("--replace-unsupported and {other} exclude each other", other=other)
    others = {
        "--distributed": distributed,
        "--mode transfer": mode == "transfer",
        "--replace-unsupported": replace_unsupported,
    }
    if keep_cuda and (other := next((name for name, given in others.items() if given), "")):
        stop("--keep-cuda and {other} exclude each other", other=other)
    options.check_common(quiet, verbose, hardware)
    built = chosen_formats(formats)
    if built and diff:
        stop("--format needs a result: --diff writes none")

    # From here on the work begins, and with it the imports that take their time.
    from migrator.core.settings import Settings
    from migrator.migrate.run import LEFT_ALONE, REPLACED, Plan, preview
    from migrator.migrate.run import migrate as run

    # A bar and a diff on one terminal would run into each other.
    bar = ProgressBar(shown=not quiet and not verbose and not (diff and sys.stdout.isatty()))
    try:
        settings = Settings(
            version=options.torch_version(version, source, quiet),
            hardware=hardware or "",
            select=(split(select) or ("ALL",))
            + split(extend_select)
            + (LEFT_ALONE if show_left_alone else ())
            + (REPLACED if replace_unsupported else ()),
            ignore=split(ignore),
            rule_files=tuple(rules or ()),
            transfer=mode == "transfer",
            keep_cuda=keep_cuda,
            specify_device=specify_device,
        )
        plan = Plan(
            Path(source or ""),
            settings,
            tuple(exclude or ()),
            jobs,
            main,
            distributed,
            target_model,
            safe_only,
            docs,
            replace_unsupported,
        )
        options.say_what_is_not_used(settings.rule_files)
        with log_on_terminal(verbose), bar:
            if diff:
                outcome = preview(plan, _print_bytes, bar)
            else:
                outcome = run(plan, Path(output or ""), overwrite, bar)
    except KeyboardInterrupt:
        said = _("interrupted")
        if bar.total:
            said += _(" after {done} of {total} Python files", done=bar.done, total=bar.total)
        what = _("the diff is not complete") if diff else _("no result was written")
        stop(f"{said}: {what}", INTERRUPTED)
    files = write_reports(outcome.result, built, rules) if outcome.result and built else []
    if not quiet:
        _show(outcome, plan, files)
    raise typer.Exit(outcome.exit_code)


def _print_bytes(data: bytes) -> None:
    from migrator.report.colors import diff_for_terminal

    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(diff_for_terminal(data))
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        forget_stdout()
        raise typer.Exit(DONE) from None


def _show(outcome: Outcome, plan: Plan, files: Sequence[Path]) -> None:
    from rich.console import Console

    from migrator.api_support.versions import resolve
    from migrator.cli.next_commands import after_migration, after_preview
    from migrator.launch.script import NAME
    from migrator.report.terminal import show_next, show_summary

    # A diff has the standard output to itself.
    console = Console(stderr=outcome.result is None, highlight=False)
    head = _("{source} for torch {version}", source=plan.source, version=plan.settings.version)
    if resolve(plan.settings.version).evidence == "interpolated":
        head += _(" (judged by neighbouring versions: there is no evidence for it)")
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
