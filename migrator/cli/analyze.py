"""``npumigrate analyze``: what a project uses that an NPU has not, or does better another way."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from migrator.cli import options
from migrator.cli.ending import INTERRUPTED, check_folder, say, stop, summary_printed
from migrator.cli.options import Given
from migrator.cli.progress import ProgressBar, log_on_terminal
from migrator.cli.report import chosen_formats, write_reports
from migrator.command_options import split
from migrator.language import N_, _

if TYPE_CHECKING:
    from migrator.analyze.run import Outcome

_MODES = ("torch_apis", "third_party", "affinity_apis", "dynamic_shape")


def analyze(given: Given) -> None:
    """List APIs unsupported or partly supported on NPUs, and faster alternatives.

    SRC is not changed. The result is OUT/<name>_analysis, a folder of tables.

    Exit status: 0 done; 1 done, but some files could not be analysed; 2 usage error
    or nothing done; 130 interrupted.
    """
    source = options.source_of(given, given.words or (), "npumigrate analyze")
    built = chosen_formats(given.formats)
    modes = tuple(dict.fromkeys(split(given.mode))) if given.mode else _MODES[:1]
    wrong = [name for name in modes if name not in _MODES]
    if wrong or not modes:
        named = ", ".join(wrong) or _("without a name")
        stop("--mode: choose from {known}, not {wrong!r}", wrong=named, known=", ".join(_MODES))
    _check_together(given, modes)

    # From here on the work begins, and with it the imports that take their time.
    from migrator.analyze.run import Job
    from migrator.analyze.run import analyze as run
    from migrator.cli.next_commands import after_analysis
    from migrator.project.definitions import Definitions

    bar = ProgressBar(shown=not given.quiet and not given.verbose)
    place = Path(os.path.abspath(source))
    folder, found_in = place if place.is_dir() else place.parent, tuple(map(Path, given.env_path or ()))
    try:
        settings = options.settings_of(given, source)
        job = Job(
            Path(source),
            settings,
            modes,
            tuple(given.exclude or ()),
            tuple(map(Path, given.api_files or ())),
            given.jobs,
            Definitions(folder, found_in) if given.deep else None,
        )
        with log_on_terminal(given.verbose), bar:
            outcome = run(job, Path(given.output), given.overwrite, bar)
    except KeyboardInterrupt:
        stop("interrupted: no report was written", INTERRUPTED)
    lost = [mode for mode in modes if mode not in outcome.tally.runs]
    if lost:
        said = N_("interrupted: tables without {lost}; skipped_files.csv lists the files not reached")
        say(_(said, lost=", ".join(lost)))
    elif outcome.exit_code == INTERRUPTED:
        said = N_("interrupted after {done} of {total} files; skipped_files.csv lists the others")
        say(_(said, done=bar.done, total=bar.total))
    files = write_reports(outcome.reports, built, given.rules) if built else []
    if not given.quiet:
        with summary_printed():
            said = N_("{source} for torch {version}: {modes}")
            head = _(said, source=source, version=settings.version, modes=", ".join(modes))
            commands = after_analysis(job.source, outcome.reports, settings.version, bool(files))
            _show(outcome, head, files, commands)
    raise typer.Exit(outcome.exit_code)


def _check_together(given: Given, modes: tuple[str, ...]) -> None:
    """Refuse an option that would do nothing."""
    if given.api_files and "torch_apis" not in modes:
        stop("--api-files works only with -m {value}", value=",".join((*modes, "torch_apis")))
    if given.deep and modes == ("third_party",):
        stop("--deep has no effect with -m third_party")
    if given.env_path and not given.deep:
        stop("--env-path needs --deep")
    for path in given.env_path or ():
        check_folder(path, "--env-path: ")


def _show(outcome: Outcome, head: str, files: Sequence[Path], commands: Sequence[str]) -> None:
    from rich.console import Console

    from migrator.report.csv_tables import load_tables
    from migrator.report.terminal import show_next, show_summary

    console = Console(highlight=False)
    show_summary(console, outcome.tally, head, 0, None, outcome.reports, files=files)
    for name, table in load_tables().items():
        if table.runs == ("third_party",) and "third_party" in outcome.tally.runs:
            console.print(f"{outcome.tally.rows[name]:>6}  {name}")
    show_next(console, commands)
