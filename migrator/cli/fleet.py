"""``npumigrate fleet``: thousands of repositories over Dask."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Callable

from migrator.cli.ending import DONE, PROBLEMS, say, stop
from migrator.cli.options import Given
from migrator.language import N_, _
from migrator.this_copy import install_command

if TYPE_CHECKING:
    from migrator.fleet.job import Outcome, Task


def fleet(given: Given) -> int:
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
    from migrator.fleet.cluster import examine_all
    from migrator.fleet.job import Task
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

        with _progress(len(listed), given.quiet) as tell:
            outcomes = examine_all(
                listed, task, given.scheduler, given.jobs or processors(), given.retries, tell, link
            )
        _report(output, task, outcomes, given.quiet)
    except OSError as error:
        stop(str(error))
    return DONE if all(item["state"] == "done" for item in outcomes) else PROBLEMS


@contextmanager
def _progress(total: int, quiet: bool) -> Iterator[Callable[[Outcome], None]]:
    """A live bar on a terminal, with what cannot be examined above it; else only those lines."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=quiet or not sys.stderr.isatty()) as bar:
        job = bar.add_task(_("repositories"), total=total)

        def tell(outcome: Outcome) -> None:
            bar.advance(job)
            bar.update(job, description=outcome["name"][:30])
            if outcome["state"] != "done":
                say(f"{outcome['name']}: {outcome['state']}: {outcome['reason']}")

        yield tell


def _report(output: Path, task: Task, outcomes: Sequence[Outcome], quiet: bool) -> None:
    from migrator.fleet.tables import write, write_page
    from migrator.matchers.packs import load_all

    table, found = write(output, outcomes)
    page = write_page(output, task, table, found, {rule.code: _(rule.summary) for rule in load_all()})
    if not quiet:
        done = [item for item in outcomes if item["state"] == "done"]
        known = sum(item["known"] for item in done)
        said = N_("{done} of {total} repositories examined ({known} in earlier runs)")
        print(_(said, done=len(done), total=len(outcomes), known=known))
        print(page)
