"""One file after the other through the engine, in this process or in several."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from migrator.engine.run import Engine
from migrator.engine.settings import Settings
from migrator.finding import FileResult
from migrator.reporting.unified_diff import unified_diff
from migrator.sources.errors import Unreadable, shown
from migrator.sources.source import LARGEST, encode, read

if TYPE_CHECKING:
    from migrator.engine.project import Project

_LOG = logging.getLogger("npumigrate")

# The new bytes of each file; these and their diff; only what there is to say of the file as it is.
Task = Literal["migrate", "diff", "inspect"]

# Enough for a worker to be busy while the last chunk's results are written, few enough to spread well.
_CHUNK = 8
_CHUNKS_AHEAD = 4
# Below this many bytes of Python, starting processes takes longer than they save.
_WORTH_PROCESSES = 4_000_000


@dataclass(frozen=True)
class Work:
    """One Python file to process: its name inside the project, and where it lies."""

    name: str
    path: Path


@dataclass(frozen=True)
class Done:
    """What became of one file: the engine's result without its text, and the new bytes or their diff.

    ``data`` and ``diff`` are empty where the file stays as it is.
    """

    result: FileResult
    data: bytes = b""
    diff: bytes = b""


def processes_for(size: int, wanted: int | None) -> int:
    """How many processes to use for ``size`` bytes of Python, where ``wanted`` is what the user said."""
    if wanted is not None:
        return wanted
    return _cpus() if size >= _WORTH_PROCESSES else 1


def _cpus() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def process_files(
    files: Sequence[Work], engine: Engine, settings: Settings, project: Project, jobs: int, task: Task
) -> Iterator[Done]:
    """The results for ``files``, in their order, whatever the number of processes.

    A worker that is killed from outside loses nothing: what it and the others had
    not finished is done in this process.
    """
    finished = 0
    if jobs > 1 and len(files) > 1:
        try:
            for done in _in_processes(files, settings, project, min(jobs, len(files)), task):
                finished += 1
                yield done
        except BrokenProcessPool:
            _LOG.warning("a worker process ended early: going on with one process")
    for work in files[finished:]:
        yield _process(work, engine, project, task)


def _in_processes(
    files: Sequence[Work], settings: Settings, project: Project, jobs: int, task: Task
) -> Iterator[Done]:
    chunks = iter([files[start : start + _CHUNK] for start in range(0, len(files), _CHUNK)])
    pool = ProcessPoolExecutor(jobs, initializer=_start_worker, initargs=(settings, project, task))
    waiting: deque[Future[list[Done]]] = deque()
    try:
        for chunk in chunks:
            waiting.append(pool.submit(_process_chunk, chunk))
            if len(waiting) >= jobs * _CHUNKS_AHEAD:
                yield from waiting.popleft().result()
        while waiting:
            yield from waiting.popleft().result()
        pool.shutdown()
    except BaseException:
        # Ctrl-C, a killed worker, or the caller has had enough: nobody waits for what is still running.
        pool.shutdown(wait=False, cancel_futures=True)
        for process in multiprocessing.active_children():
            process.terminate()
        raise


_worker: tuple[Engine, Project, Task] | None = None


def _start_worker(settings: Settings, project: Project, task: Task) -> None:
    global _worker
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears Ctrl-C, and ends the workers
    _worker = (Engine(settings), project, task)


def _process_chunk(chunk: Sequence[Work]) -> list[Done]:
    assert _worker is not None
    engine, project, task = _worker
    return [_process(work, engine, project, task) for work in chunk]


def _process(work: Work, engine: Engine, project: Project, task: Task) -> Done:
    name = shown(work.name)
    try:
        source = read(work.path, work.name)
    except Unreadable as error:
        return Done(FileResult(name, skipped=str(error) if _looks_relevant(work.path, engine) else ""))
    work_on = engine.inspect_text if task == "inspect" else engine.migrate_text
    migrated = work_on(work.name, source.text, project)
    # Edits have been applied, and what goes between processes should be small.
    findings = tuple(replace(finding, edits=()) for finding in migrated.findings)
    result = replace(migrated, name=name, text=None, findings=findings)
    if migrated.text is None or migrated.text == source.text:
        return Done(result)
    try:
        data = encode(source, migrated.text)
    except Unreadable as error:
        return Done(FileResult(name, skipped=str(error), left_alone=result.left_alone))
    if task != "diff":
        return Done(result, data)
    return Done(result, data, unified_diff(name, encode(source, source.text), data))


def _looks_relevant(path: Path, engine: Engine) -> bool:
    """Whether a file that cannot be read as Python text may need changes; True where it cannot be told."""
    try:
        with open(path, "rb") as file:
            data = file.read(LARGEST + 1)
    except OSError:
        return True
    return len(data) > LARGEST or engine.is_relevant(data.replace(b"\0", b"").decode("latin-1"))
