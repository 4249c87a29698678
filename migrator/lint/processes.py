"""The files that the cache does not know, checked in this process or in several."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Optional

from migrator.files.document import document
from migrator.files.errors import Unreadable
from migrator.files.source import read_bytes
from migrator.lint.diagnostic import Checked
from migrator.lint.engines import check_document
from migrator.lint.jobs import Job
from migrator.project.project import Project
from migrator.run.cache import digest
from migrator.run.processes import processes_for, spread

# The digest of the content that was looked at, as a file may just have changed, and what was found in it.
_Done = tuple[bytes, Checked]


def check_files(jobs: Sequence[Job], project: Project, processes: Optional[int]) -> Iterator[_Done]:
    """The findings of each file, in order.

    Raises RuleError and UnknownVersion where the rules cannot be used.
    """
    size = sum(os.path.getsize(job.place) for job in jobs if job.data is None and job.place.exists())
    return spread(
        jobs,
        processes_for(size, processes),
        lambda job: _check(job, project),
        _start,
        (project,),
        _check_some,
    )


_project = Project()


def _start(project: Project) -> None:
    global _project
    _project = project


def _check_some(jobs: Sequence[Job]) -> list[_Done]:
    return [_check(job, _project) for job in jobs]


def _check(job: Job, project: Project) -> _Done:
    data = b""
    try:
        data = read_bytes(job.place) if job.data is None else job.data
        item = document(data, job.path)
    except Unreadable as error:
        return digest(data), Checked(trouble=str(error))
    return digest(data), check_document(job.rules, job.path, job.name, item, project, job.ignored)
