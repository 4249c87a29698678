"""One file after the other through the engine, in this process or in several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Callable, Literal, Optional

from migrator.convert.result import Converted, with_conversion
from migrator.core.engine import Engine
from migrator.core.settings import Settings
from migrator.files.discover import Entry
from migrator.files.document import document, encoded
from migrator.files.errors import Unreadable, shown
from migrator.files.notebook import Notebook, cell_place, message_in_cell
from migrator.files.source import LARGEST, read_bytes
from migrator.findings.finding import FileResult, Finding
from migrator.matchers.other_files import beside_python, look_at
from migrator.report.unified_diff import unified_diff
from migrator.run.processes import spread

if TYPE_CHECKING:
    from migrator.project.project import Project

# The new bytes of each file; these and their diff; only what there is to say of the file as it is.
Task = Literal["migrate", "diff", "inspect"]

# What is going on, how many files of how many (0: not known yet).
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Work:
    """One Python file or notebook to process: its name inside the project, and where it lies.

    ``converted`` holds the text that takes the place of the file's own, and what there is to say of it.
    """

    name: str
    path: Path
    converted: Optional[Converted] = None


@dataclass(frozen=True)
class Done:
    """What became of one file: the engine's result without its text, and the new bytes or their diff.

    ``data`` and ``diff`` are empty where the file stays as it is. ``beside`` is what there is to say of a
    notebook's lines that are no Python.
    """

    result: FileResult
    data: bytes = b""
    diff: bytes = b""
    beside: Optional[FileResult] = None


def process_files(
    files: Sequence[Work], engine: Engine, settings: Settings, project: Project, jobs: int, task: Task
) -> Iterator[Done]:
    """The results for ``files``, in their order, whatever the number of processes.

    A worker that is killed from outside loses nothing: what it and the others had
    not finished is done in this process.
    """
    return spread(
        files,
        jobs,
        lambda work: _process(work, engine, project, task),
        _start_worker,
        (settings, project, task),
        _process_chunk,
    )


def with_the_others(
    entries: Sequence[Entry], results: Iterator[Done], project: Project, stage: str, progress: Progress
) -> Iterator[tuple[Entry, Done]]:
    """The results for what of ``entries`` holds Python, and in their places what is to say of the others."""
    total = sum(entry.holds_python for entry in entries)
    finished = 0
    progress(stage, 0, total)
    for entry in entries:
        if entry.holds_python:
            done = next(results)
            yield entry, done
            finished += 1
            progress(stage, finished, total)
            if done.beside is not None:
                yield replace(entry, kind="file"), Done(done.beside)
        elif entry.kind == "file":
            other = look_at(entry, project.operators)
            if other is not None:
                yield entry, Done(other)
        else:
            yield entry, Done(FileResult(shown(entry.name), skipped=entry.reason))


_worker: tuple[Engine, Project, Task] | None = None


def _start_worker(settings: Settings, project: Project, task: Task) -> None:
    global _worker
    _worker = (Engine(settings), project, task)


def _process_chunk(chunk: Sequence[Work]) -> list[Done]:
    assert _worker is not None
    engine, project, task = _worker
    return [_process(work, engine, project, task) for work in chunk]


def _process(work: Work, engine: Engine, project: Project, task: Task) -> Done:
    name = shown(work.name)
    try:
        source = document(read_bytes(work.path), work.name)
    except Unreadable as error:
        return Done(FileResult(name, skipped=str(error) if _looks_relevant(work.path, engine) else ""))
    work_on = engine.inspect_text if task == "inspect" else engine.migrate_text
    text = work.converted.text if work.converted else source.text
    migrated = work_on(work.name, text, project)
    if work.converted:
        migrated = with_conversion(migrated, work.converted)
    # Edits have been applied, and what goes between processes should be small.
    findings = tuple(replace(finding, edits=()) for finding in migrated.findings)
    skipped, beside = migrated.skipped, None
    if source.notebook is not None:
        beside = beside_python(source.notebook)
        findings = tuple(_in_cell(source.notebook, finding) for finding in findings)
        skipped = skipped or _broken_cells(source.notebook, engine)
    result = replace(migrated, name=name, text=None, findings=findings, skipped=skipped)
    if migrated.text is None or migrated.text == source.text:
        return Done(result, beside=beside)
    try:
        data = encoded(source, migrated.text)
    except Unreadable as error:
        return Done(FileResult(name, skipped=str(error), left_alone=result.left_alone), beside=beside)
    diff = unified_diff(name, source.data, data) if task == "diff" else b""
    return Done(result, data, diff, beside)


def _in_cell(notebook: Notebook, finding: Finding) -> Finding:
    cell, line = cell_place(notebook, finding.line)
    end_line = line + finding.end_line - finding.line
    message = message_in_cell(notebook, finding.message)
    return replace(finding, cell=cell.number, line=line, end_line=end_line, message=message)


def _broken_cells(notebook: Notebook, engine: Engine) -> str:
    """The cells that could not be processed, and look as if they had to be."""
    return "; ".join(
        f"cell {cell.number}: not valid Python ({cell.error[1]})"
        for cell in notebook.cells
        if cell.error and engine.is_relevant(cell.source)
    )


def _looks_relevant(path: Path, engine: Engine) -> bool:
    """Whether a file that cannot be read as Python text may need changes; True where it cannot be told."""
    try:
        with open(path, "rb") as file:
            data = file.read(LARGEST + 1)
    except OSError:
        return True
    return len(data) > LARGEST or engine.is_relevant(data.replace(b"\0", b"").decode("latin-1"))
