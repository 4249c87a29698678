"""What lint says of an open document. It knows nothing of the protocol."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from migrator.files.document import Document
from migrator.files.notebook import Notebook, changed_cells
from migrator.files.source import Source, lines_of
from migrator.findings.finding import Finding, internal_error
from migrator.light import Frozen
from migrator.lint import baseline
from migrator.lint.file import SYNTAX, check_document, failed
from migrator.lint.files import Stamp, Target
from migrator.lint.fixing import fix_document
from migrator.lint.options import counting, may_be_fixed
from migrator.project.project import Project
from migrator.run.processes import GivenUpError, bounded
from migrator.server.documents import same_start
from migrator.server.workspace import parses


class Question(Frozen):
    """What decides an analysis: equal questions have equal answers."""

    content: Source | Notebook
    target: Target
    project: Project
    baseline: Stamp = ()

    @property
    def document(self) -> Document:
        """The document that is linted: its name is that inside the project."""
        return Document(b"", self.content._replace(name=self.target.name))


class Analysis(Frozen):
    """The findings of a text.

    In a text that is ``broken``, not Python just now, they are those of the text before it
    whose lines are still there, without fixes; in a notebook the same is true of each broken
    cell. ``trouble`` says why there are none.
    """

    question: Question
    found: tuple[Finding, ...]
    broken: bool = False
    trouble: str = ""


def answer(asked: Question, before: Analysis | None) -> Analysis:
    """Lint a text; ``before`` is the analysis of the text that it was made from.

    Raises ConfigError and RuleError for options that cannot be used.
    """
    target, text = asked.target, asked.content.text
    options = target.options
    try:
        checked = bounded(check_document)(target, asked.document, asked.project)
    except GivenUpError as error:
        checked = failed(internal_error(target.name, error))
    found: Sequence[Finding] = counting(checked.found, options)
    broken = any(item.code == SYNTAX for item in checked.found)
    if isinstance(asked.content, Notebook) or asked.content.type:
        broken = False
    elif not checked.found:
        broken = not parses(text)  # NPU999 may be off
    if broken and before is not None and before.found:
        old = before.question.content.text
        return Analysis(asked, (*_carried(before.found, lines_of(old), lines_of(text)), *found), broken=True)
    if options.baseline and found:
        file = Path(options.baseline)
        root = file.absolute().parent

        def lines(finding: Finding) -> Sequence[str]:
            cells = asked.content.cells if isinstance(asked.content, Notebook) else ()
            return lines_of(next((cell.source for cell in cells if cell.number == finding.cell), text))

        found, _ = baseline.split(found, baseline.read(file), lines, root)
    if isinstance(asked.content, Notebook) and before is not None:
        earlier = before.question.content
        known = {} if isinstance(earlier, Source) else {cell.number: cell for cell in earlier.cells}
        for cell in asked.content.cells:
            if cell.error and cell.number in known:
                inside = [item for item in before.found if item.cell == cell.number]
                was = lines_of(known[cell.number].source)
                found = [*found, *_carried(inside, was, lines_of(cell.source))]
    return Analysis(asked, tuple(found), trouble=checked.trouble)


def migrated(analysis: Analysis) -> str:
    """The text of a file with all fixes, the unsafe ones too."""
    asked = analysis.question
    return fix_document(asked.target, asked.document, asked.project, list(analysis.found), True)[0]


def fixed(analysis: Analysis) -> list[tuple[int | None, str]]:
    """What changes with the fixes that ``lint --fix`` makes: the text, or those of cells by their numbers."""
    asked = analysis.question
    options = asked.target.options
    shown = [item for item in analysis.found if may_be_fixed(item, options)]
    new, *_ = fix_document(asked.target, asked.document, asked.project, shown, options.unsafe_fixes)
    if isinstance(asked.content, Source):
        return [(None, new)]
    return [(cell.number, source) for cell, source in changed_cells(asked.content, new)]


def _carried(found: Iterable[Finding], old: list[str], new: list[str]) -> list[Finding]:
    """The earlier findings of a file or a cell in the lines above and below what was changed."""
    same_above = same_start(old, new)
    same_below = same_start(old[same_above:][::-1], new[same_above:][::-1])
    kept = []
    for item in found:
        moved = 0
        if item.line > len(old) - same_below:
            moved = len(new) - len(old)
        elif item.end_line > same_above:
            continue
        if item.code != SYNTAX:
            line, end_line = item.line + moved, item.end_line + moved
            kept.append(item._replace(line=line, end_line=end_line, fix=None, noqa_line=None))
    return kept
