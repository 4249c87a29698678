"""``npumigrate fleet``: thousands of repositories over Dask."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from migrator.cli.ending import DONE, PROBLEMS, say, stop
from migrator.cli.options import Given
from migrator.cli.progress import ProgressBar
from migrator.language import N_, _
from migrator.this_copy import install_command

if TYPE_CHECKING:
    from migrator.fleet.job import Outcome, Task


def fleet(given: Given) -> None:
    """Migrate, analyze or lint many repositories, on one machine or on a Dask cluster.

    Finished repositories are never repeated: run the same command again to resume. OUT gets
    repositories.parquet, findings.parquet, index.html, and with --do migrate the folder migrated.

    Exit status: 0 all examined; 1 some failed; 2 usage error; 130 interrupted.
    """
    output, command = given.output, given.command
    if given.repositories is None or output is None:
        stop("missing list or folder: npumigrate fleet REPOS.txt -o OUT")
    if sys.platform == "win32":
        stop("fleet runs on Linux and macOS")
    try:
        import distributed
        import pyarrow
        import unearth  # noqa: F401
    except ModuleNotFoundError as error:
        how = install_command("fleet")
        stop("fleet needs the package {name}: {command}", name=error.name, command=how)
    del distributed, pyarrow
    from migrator.api_support.versions import resolve
    from migrator.cli.emulate import size
    from migrator.fleet.job import Task, examine_all
    from migrator.fleet.repositories import read_list
    from migrator.run.cache import digest, tool_digest
    from migrator.run.processes import processors

    try:
        listed = read_list(given.repositories)
        torch = resolve(given.version).text if given.version else ""
        output.mkdir(parents=True, exist_ok=True)
        task = Task(
            command,
            torch,
            str(output.resolve()),
            given.timeout,
            size(given.memory),
            given.index_url or os.environ.get("PIP_INDEX_URL", ""),
            tuple(os.path.abspath(file) for file in given.rules or ()),
            digest(tool_digest().encode(), *(Path(file).read_bytes() for file in given.rules or ())).hex(),
        )

        def link(address: str) -> None:
            if address and not given.quiet:  # Dask shows its work where its package bokeh is installed
                say(_("Dask's dashboard: {address}", address=address))

        number = count(1)

        def tell(outcome: Outcome) -> None:
            bar(_("repositories"), next(number), len(listed))
            if outcome["state"] != "done":
                say(f"{outcome['name']}: {outcome['state']}: {outcome['reason']}")

        with ProgressBar(shown=not given.quiet) as bar:
            outcomes = examine_all(
                listed, task, given.scheduler, given.jobs or processors(), given.retries, tell, link
            )
        _report(output, task, outcomes, given.quiet)
    except OSError as error:
        stop(str(error))
    raise typer.Exit(DONE if all(item["state"] == "done" for item in outcomes) else PROBLEMS)


def _report(output: Path, task: Task, outcomes: Sequence[Outcome], quiet: bool) -> None:
    from datetime import datetime

    from migrator.fleet.tables import with_this_run, write, write_page
    from migrator.matchers.packs import load_all

    table, found = write(output, outcomes)
    runs = with_this_run(output, task, table, f"{datetime.now():%Y-%m-%d %H:%M}")
    page = write_page(output, task, table, found, {rule.code: _(rule.summary) for rule in load_all()}, runs)
    if not quiet:
        done = [item for item in outcomes if item["state"] == "done"]
        known = sum(item["known"] for item in done)
        said = N_("{done} of {total} repositories examined ({known} in earlier runs)")
        typer.echo(_(said, done=len(done), total=len(outcomes), known=known))
        typer.echo(page)
