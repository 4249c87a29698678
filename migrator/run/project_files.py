"""The files of a project, checked one after the other in this process or in several: migrate and analyze."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Optional

from migrator.core.changes import placed
from migrator.core.check import Converted, check, no_fix
from migrator.core.matching import Admit
from migrator.core.rules import Rules, rules_for
from migrator.core.settings import Settings
from migrator.files.discover import Entry
from migrator.files.document import Document, document, encoded
from migrator.files.errors import SourceError, Unreadable, shown
from migrator.files.notebook_parts import Part, parts_of, with_part
from migrator.files.source import LARGEST, read_bytes
from migrator.files.unified_diff import unified_diff
from migrator.findings.finding import Finding, Result, internal_error
from migrator.language import N_, _
from migrator.light import Frozen
from migrator.matchers.other_files import Foreign, beside_python, look_at, with_mentions
from migrator.project.frameworks import TORCH, of_project
from migrator.project.offers import FOREIGN
from migrator.project.project import Project
from migrator.run.processes import GivenUpError, Progress, spread

# A file: its name inside the project, where it lies, what a conversion makes of it.
_Work = tuple[str, Path, Optional[Converted]]


class Done(Frozen):
    """What became of one file: the result without its text, and the new bytes or their diff.

    ``data`` and ``diff`` are empty where the file stays as it is. ``beside`` is what there is to say of a
    notebook's lines other than Python.
    """

    result: Result
    data: bytes = b""
    diff: bytes = b""
    beside: Optional[Result] = None


def check_files(
    entries: Sequence[Entry],
    settings: Settings,
    project: Project,
    jobs: int,
    progress: Progress,
    admit: Admit = no_fix,
    converted: Optional[Mapping[str, Converted]] = None,
    diff: bool = False,
    keeps: Optional[Callable[[Finding], bool]] = None,
) -> Iterator[tuple[Entry, Done]]:
    """What is to say of each file, in their order: what rules know is checked, the rest is searched for CUDA.

    ``admit`` says which fixes are made; ``converted`` are what conversions make of files, by name, before
    the rules see them; ``diff``: with the diffs of those that change; ``keeps`` says which findings of
    checked files are wanted, where not all are: the others need not go between processes.
    """
    known = converted or {}
    work = [(entry.name, entry.path, known.get(entry.name)) for entry in entries if entry.checked]
    results = spread(work, jobs, _check_file, settings, project, admit, diff, keeps)
    stage = "analysing" if admit is no_fix else "migrating"
    finished = 0
    progress(stage, 0, len(work))
    for entry in entries:
        if entry.checked:
            done = next(results)
            yield entry, done
            finished += 1
            progress(stage, finished, len(work))
            if done.beside is not None:
                yield replace(entry, kind="file"), Done(done.beside)
        elif entry.kind == "file":
            other = _look_at(entry, project)
            if other is not None:
                yield entry, Done(other)
        else:
            yield entry, Done(Result(shown(entry.name), skipped=entry.reason))


def refuse_without_python(entries: Sequence[Entry], source: Path, excluded: bool) -> None:
    """Raise SourceError where there is nothing to do; ``excluded``: the user left out some files."""
    if not any(entry.holds_python for entry in entries):
        rest = _(" that are not excluded") if excluded else ""
        said = N_("{source} has no Python files or notebooks{rest}: nothing to do")
        raise SourceError(said, source=shown(source), rest=rest)


def _look_at(entry: Entry, project: Project) -> Optional[Result]:
    """What there is to say of a file that holds no Python; None without."""
    try:
        known = project.failed.get(entry.name)
        return known or look_at(entry, project.operators, _foreign(project), project.uses.get(entry.name))
    except Exception as error:
        return internal_error(shown(entry.name), error)


def _foreign(project: Project) -> Foreign:
    return project.offers.names(FOREIGN) if TORCH in of_project(project.frameworks) else None


def _check_file(work: _Work, *shared: Any) -> Done:
    try:
        return _checked(work, *shared)
    except (Exception, GivenUpError) as error:
        return Done(internal_error(shown(work[0]), error))


def _checked(
    work: _Work,
    settings: Settings,
    project: Project,
    admit: Admit,
    diff: bool,
    keeps: Optional[Callable[[Finding], bool]],
) -> Done:
    plain_name, path, converted = work
    name, rules = shown(plain_name), rules_for(settings)
    try:
        source = document(read_bytes(path), plain_name)
    except Unreadable as error:
        return Done(Result(name, skipped=str(error) if _looks_relevant(path, rules) else ""))
    write = admit is not no_fix
    result = check(source, rules, project, admit, converted, write=write)
    text, beside, skipped = result.text, None, result.skipped
    changed: list[tuple[Part, str]] = []
    if source.type:
        result = with_mentions(result, source, _foreign(project))
    elif source.notebook is not None:
        known: set[int] = set()
        for part in parts_of(source.notebook):
            of_part = check(Document(b"", part.source), rules, project, admit, write=write)
            if not (of_part.skipped or of_part.left):
                known.update(part.cells)
                result = result._replace(findings=(*result.findings, *of_part.findings))
                if of_part.text is not None:
                    changed.append((part, of_part.text))
        in_order = sorted(result.findings, key=lambda each: (each.line, each.column))
        result = result._replace(findings=tuple(in_order))
        beside = beside_python(source.notebook, known)
        skipped = skipped or _broken_cells(source, rules)
    wanted = result.findings if keeps is None else filter(keeps, result.findings)
    # What goes between processes should be small: nobody makes these fixes again.
    findings = tuple(
        item._replace(fix=item.fix._replace(edits=(), imports=())) if item.fix else item
        for item in (placed(source, finding) for finding in wanted)
    )
    result = result._replace(name=name, text=None, findings=findings, skipped=skipped)
    if text is None and not changed:
        return Done(result, beside=beside)
    try:
        if source.notebook is not None:
            notebook = source.notebook
            for part, new in changed:
                notebook = with_part(notebook, part, new)
            source = replace(source, content=notebook)
        data = encoded(source, source.text if text is None else text)
    except Unreadable as error:
        return Done(Result(name, skipped=str(error), left_alone=result.left_alone), beside=beside)
    return Done(result, data, unified_diff(name, source.data, data) if diff else b"", beside)


def _broken_cells(source: Document, rules: Rules) -> str:
    """The cells of a notebook that could not be checked, where anything in it had to be."""
    broken = [cell for cell in (source.notebook.cells if source.notebook else ()) if cell.error]
    if not any(map(rules.is_relevant, (source.text, *(cell.source for cell in broken)))):
        return ""
    said = N_("cell {number}: not valid Python ({error})")
    return "; ".join(_(said, number=cell.number, error=cell.error[1]) for cell in broken if cell.error)


def _looks_relevant(path: Path, rules: Rules) -> bool:
    """Whether a file that cannot be read as Python text may need changes; True where that is unknown."""
    try:
        with open(path, "rb") as file:
            data = file.read(LARGEST + 1)
    except OSError:
        return True
    return len(data) > LARGEST or rules.is_relevant(data.replace(b"\0", b"").decode("latin-1"))
