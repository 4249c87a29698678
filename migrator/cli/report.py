"""``npumigrate report``: the reports of a result built again from its tables, and two compared."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Optional

import typer

from migrator.cli.ending import DONE, check_folder, forget_stdout, stop
from migrator.cli.next_commands import after_report, say_next, shell_word
from migrator.cli.options import Given
from migrator.command_options import Several, split

FORMATS = ("html", "summary", "md", "xlsx", "csv", "json")


def report(given: Given) -> None:
    """Rebuild the reports of a result from its tables, or compare two results.

    DIR is OUT/<name>_msft, its migration_report, or OUT/<name>_analysis. The report includes what
    verify --format html recorded.

    Exit status: 0 done; 1 diff found something new; 2 usage error, or reports that cannot be
    read or written.
    """
    paths = given.paths or []
    if paths[:1] == [Path("diff")]:
        if len(paths) != 3:
            stop("diff needs two results: npumigrate report diff A B")
        page = "html" in chosen_formats(given.formats)
        raise typer.Exit(_diff(paths[1], paths[2], given.quiet, page, given.output))
    if len(paths) != 1:
        stop("give exactly one result: npumigrate report DIR")
    files = write_reports(paths[0], chosen_formats(given.formats) or ("html",), given.rules, given.output)
    if not given.quiet:
        for file in files:
            typer.echo(file)
        say_next(*after_report(paths[0]))


def chosen_formats(formats: Several) -> tuple[str, ...]:
    """The formats that were asked for. Stops at one that there is not."""
    given = tuple(dict.fromkeys(split(formats)))
    wrong = [name for name in given if name not in FORMATS]
    if wrong:
        stop("--format: choose from {known}, not {wrong!r}", wrong=wrong[0], known=", ".join(FORMATS))
    return given


def write_reports(
    result: Path, formats: tuple[str, ...], rules: Several = None, output: Optional[Path] = None
) -> list[Path]:
    """Build the reports of a result; gives their files. Stops with one line where that cannot be done."""
    check_folder(output, "--output: ")
    from migrator.matchers.packs import load_all
    from migrator.report.views.writing import write_formats

    known = {rule.code: rule for rule in load_all(rules or ())}
    return write_formats(result, formats, known, output)


def _diff(before: Path, after: Path, quiet: bool, page: bool, output: Optional[Path]) -> int:
    from rich.console import Console

    from migrator.report.views.run import read_run
    from migrator.report.views.writing import difference, show_difference

    runs = read_run(before).said_again(), read_run(after).said_again()
    found = difference(*runs)
    if page:
        from migrator.files.replacing import replace_file
        from migrator.report.views.page import difference_page

        file = (output or runs[1].folder) / "diff.html"
        replace_file(file, difference_page(runs, *found).encode("utf-8", "backslashreplace"))
    if not quiet:
        try:
            show_difference(Console(highlight=False), runs, *found)
            sys.stdout.flush()
            say_next(f"npumigrate report {shell_word(str(after))}")
        except (BrokenPipeError, SystemExit):  # rich turns the one into the other
            forget_stdout()
    return 1 if len(found[0]) else DONE
