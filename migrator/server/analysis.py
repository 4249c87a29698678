"""What lint says of an open document. It knows nothing of the protocol."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Optional

from migrator.files.document import Document
from migrator.files.notebook import Notebook, changed_cells
from migrator.files.source import Source, lines_of
from migrator.lint import baseline
from migrator.lint.cells import in_cells
from migrator.lint.check import SYNTAX
from migrator.lint.diagnostic import Diagnostic
from migrator.lint.engines import check_document, engine_for
from migrator.lint.files import Target, name_in_project
from migrator.lint.fixing import fix_text
from migrator.lint.jobs import RuleSet, rule_set
from migrator.lint.options import ignored_codes, may_be_fixed, severity_at_least, with_wanted_fixes
from migrator.project.project import Project
from migrator.server.facts import parses
from migrator.server.settings import Stamp, stamp


@dataclass(frozen=True)
class Question:
    """What decides an analysis: equal questions have equal answers. Raises ConfigError and UnknownVersion."""

    content: Source | Notebook
    target: Target
    rules: RuleSet
    project: Project
    baseline: Stamp = ()

    @property
    def text(self) -> str:
        """The Python of the content."""
        return self.content.text


@dataclass(frozen=True)
class Analysis:
    """The findings of a text.

    In a text that is ``broken``, no Python just now, they are those of the text before it
    whose lines are still there, without fixes; in a notebook the same is true of each broken
    cell. ``found`` has places in the text. ``trouble`` says why there are none.
    """

    question: Question
    found: tuple[Diagnostic, ...]
    broken: bool = False
    trouble: str = ""

    def placed(self) -> list[Diagnostic]:
        """The findings with the places that a person sees: in a notebook, those in the cells."""
        content = self.question.content
        return list(self.found) if isinstance(content, Source) else in_cells(content, self.found)


def question(content: Source | Notebook, target: Target, project: Project) -> Question:
    """The question for a text. Raises ConfigError and UnknownVersion, as the target's options deserve."""
    known = target.options.baseline
    return Question(content, target, rule_set(target.options), project, stamp([known] if known else []))


def answer(asked: Question, before: Analysis | None) -> Analysis:
    """Lint a text; ``before`` is the analysis of the text that it was made from.

    Raises ConfigError and RuleError for options that cannot be used.
    """
    target, text = asked.target, asked.text
    options = target.options
    ignored = ignored_codes(options, target.place)
    item = Document(b"", asked.content)
    checked = check_document(asked.rules, target.path, name_in_project(target), item, asked.project, ignored)
    found: Sequence[Diagnostic] = [
        item
        for item in with_wanted_fixes(checked.found, options)
        if severity_at_least(item.severity, options.severity)
    ]
    is_file = isinstance(asked.content, Source)
    if is_file and before is not None and before.found and _is_broken(checked.found, text):
        old = before.question.text
        return Analysis(asked, (*_carried(before.found, lines_of(old), lines_of(text)), *found), broken=True)
    if options.baseline and found:
        file = Path(options.baseline)
        lines = lines_of(text)
        root = file.absolute().parent
        found, _ = baseline.split(found, baseline.read(file), lambda _: lines, root)
    if isinstance(asked.content, Notebook) and before is not None:
        found = [*found, *_carried_in_cells(before, asked.content)]
    return Analysis(asked, tuple(found), trouble=checked.trouble)


def fixed(analysis: Analysis) -> list[tuple[Optional[int], str]]:
    """What changes with the fixes that ``lint --fix`` makes: the text, or those of cells by their numbers."""
    asked = analysis.question
    target = asked.target
    wanted = "unsafe" if target.options.unsafe_fixes else "safe"
    engine = engine_for(asked.rules, wanted)
    ignored = ignored_codes(target.options, target.place)
    name = name_in_project(target)
    shown = [item for item in analysis.found if may_be_fixed(item, target.options)]
    new = fix_text(engine, name, asked.text, asked.project, shown, ignored).text
    if isinstance(asked.content, Source):
        return [(None, new)]
    return [(cell.number, source) for cell, source in changed_cells(asked.content, new)]


def _is_broken(found: Sequence[Diagnostic], text: str) -> bool:
    if found:
        return any(item.code == SYNTAX for item in found)
    return not parses(text)  # NPU999 may be off


def _carried(
    found: Iterable[Diagnostic], old: list[str], new: list[str], old_first: int = 1, new_first: int = 1
) -> list[Diagnostic]:
    """The earlier findings in the lines above and below what was changed.

    ``old`` and ``new`` are the lines before and now, which begin at these rows of the texts.
    """
    most = min(len(old), len(new))
    same_above = next((row for row in range(most) if old[row] != new[row]), most)
    most -= same_above
    same_below = next((row for row in range(most) if old[-1 - row] != new[-1 - row]), most)
    kept = []
    for item in found:
        moved = new_first - old_first
        if item.row - old_first >= len(old) - same_below:
            moved += len(new) - len(old)
        elif item.end_row - old_first >= same_above:
            continue
        if item.code != SYNTAX:
            row, end_row = item.row + moved, item.end_row + moved
            kept.append(replace(item, row=row, end_row=end_row, fix=None, noqa_row=None))
    return kept


def _carried_in_cells(before: Analysis, notebook: Notebook) -> Iterator[Diagnostic]:
    """The earlier findings of cells that are no Python just now."""
    content = before.question.content
    known = {} if isinstance(content, Source) else {cell.number: cell for cell in content.cells}
    for cell in notebook.cells:
        old = known.get(cell.number)
        if cell.error and old is not None:
            found = [item for item in before.found if old.first <= item.row < old.first + old.rows]
            yield from _carried(found, lines_of(old.source), lines_of(cell.source), old.first, cell.first)
