"""Findings as people see them: what a fix made of its lines, and the places in the cells of a notebook.

Before is read from the input, After from the final text.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Optional

from migrator.files.document import Document
from migrator.files.source import Lines
from migrator.findings.edits import OffsetMap
from migrator.findings.finding import Edit, Finding, Fix, Place
from migrator.light import NamedTuple

if TYPE_CHECKING:
    from migrator.files.notebook import Notebook

# Above so many bytes a line is data: then what changes is shown, not all that stands beside it. A thousand
# changes of one line would otherwise tell it two thousand times.
_LONGEST = 2000


class Change(NamedTuple):
    """A fix that is made in one pass.

    ``lines`` are the bytes of the lines that it touches, in the text before the pass, and ``old`` those in
    the input: of ``whole`` lines, or of what it changes in very long ones. ``rounds`` of edits came before.
    ``opens`` is what it inserts right before these lines, and ``closes`` whether it inserts something right
    behind them: both belong to them.
    ``inserted`` is the statement that it adds, empty where it changes what is there.
    """

    finding: Finding
    lines: tuple[int, int]
    old: tuple[int, int]
    rounds: int
    opens: str
    closes: bool
    inserted: str
    whole: bool = True


def planned(in_input: Finding, found: Finding, lines: Lines, before: OffsetMap) -> Change:
    """The change that the fix of a finding is about to make in a text.

    ``found`` has its places in that text, ``in_input`` in the input, from which ``before`` leads there.
    """
    fix = found.fix
    assert fix is not None
    spans = [found.span, *((edit.start, edit.end) for edit in fix.edits)]
    if fix.operation == "INSERT":  # it is named by the line that it stands behind
        spans = [(max(fix.edits[0].start - 1, 0), 0)]
    first = min(lines.line_of(start) for start, _ in spans)
    last = max(lines.line_of(max(start, end - 1)) for start, end in spans)
    start, end = lines.span(first, last)
    whole = end - start <= _LONGEST or fix.operation == "INSERT"
    if whole:
        end = lines.content_end(last)
    else:
        start, end = min(start for start, _ in spans), max(end for _, end in spans)
    return Change(
        in_input,
        (start, end),
        (before.back(start), before.back(end)),
        len(before.steps),
        opens=next((edit.text for edit in fix.edits if edit.start == edit.end == start), ""),
        closes=any(edit.start == edit.end == end for edit in fix.edits),
        inserted=fix.edits[0].text.strip("; \r\n") if fix.operation == "INSERT" else "",
        whole=whole,
    )


def described(change: Change, lines: Lines, result: Lines, way: OffsetMap) -> Finding:
    """The finding with its fix as made: the lines of the input, and what stands there in the result.

    ``way`` leads from the input to the result.
    """
    fix = change.finding.fix
    assert fix is not None
    (start, end), before = change.old, ""
    if start < end:
        first, last = lines.line_of(start), lines.line_of(end)
        if change.whole:
            start, end = lines.span(first, last)[0], lines.content_end(last)
        before = lines.data[start:end].decode("utf-8").strip()
    else:  # in what an earlier round has put behind a line of the input
        first = last = lines.line_of(max(start - 1, 0))
        start, end = change.lines
        way = OffsetMap(way.steps[change.rounds :])
    after = change.inserted
    if after:
        before, last = "", first
    else:
        new_start, new_end = way.forward(start, True), way.forward(end, change.closes)
        if change.opens:  # what other fixes insert in the same place, such as an import, has a row of its own
            before_all = way.forward(start)
            own = result.data.rfind(change.opens.encode(), before_all, new_start)
            new_start = before_all if own < 0 else own
        if change.whole:
            after = _whole_lines(result, new_start, new_end)
        else:
            after = result.data[new_start:new_end].decode("utf-8").strip()
    fix = fix._replace(made=True, lines=(first, last), before=before, after=after)
    return change.finding._replace(fix=fix)


def of_conversion(
    finding: Finding, edits: Iterable[Edit], lines: Lines, result: Lines, way: OffsetMap
) -> Finding:
    """The finding of a conversion as it was made: by ``edits``, each of which may serve several findings."""
    fix = finding.fix
    if fix is None:
        return finding
    if fix.operation == "INSERT":
        word = fix.after.partition("\n")[0]
        places = [edit.start for edit in edits if edit.start == edit.end and word in edit.text]
        spans = [(way.forward(place), way.forward(place, behind=True)) for place in places]
        after = _whole_lines(result, *spans[0]) if spans else fix.after
        return finding._replace(fix=fix._replace(after=after))
    start, end = lines.span(finding.line, finding.line)[0], lines.content_end(finding.end_line)
    before = lines.data[start:end].decode("utf-8").strip()
    after = _whole_lines(result, way.forward(start), way.forward(end, behind=True))
    return finding._replace(fix=fix._replace(before=before, after=after))


def _whole_lines(text: Lines, start: int, end: int) -> str:
    """The lines between two offsets, without what surrounds them; empty where nothing is between these."""
    if start >= end:
        return ""
    first, last = text.line_of(start), text.line_of(end - 1)
    return text.data[text.span(first, last)[0] : text.content_end(last)].decode("utf-8").strip()


def placed(document: Document, finding: Finding) -> Finding:
    """A finding with the lines of its cell; in a Python file as it is."""
    notebook = document.notebook
    if notebook is None:
        return finding
    from migrator.files.notebook import cell_place, message_in_cell, with_hidden

    cell, line = cell_place(notebook, finding.line)
    noqa, fix, end_line = finding.noqa_line, finding.fix, line + finding.end_line - finding.line
    if fix and fix.lines:
        (first, last), new = fix.lines, cell_place(notebook, fix.lines[0])[1]
        before, after = with_hidden(notebook, fix.before), with_hidden(notebook, fix.after)
        fix = fix._replace(lines=(new, new + last - first), before=before, after=after)
    message = message_in_cell(notebook, finding.message)
    noqa = None if noqa is None else cell_place(notebook, noqa)[1]
    found = finding._replace(fix=fix, cell=cell.number, line=line, end_line=end_line)
    return found._replace(message=message, noqa_line=noqa)


def first_line(document: Document, finding: Finding) -> int:
    """The line of the document's text that is the first of the finding's cell; 1 in a Python file."""
    if document.notebook is None:
        return 1
    return next(cell.first for cell in document.notebook.cells if cell.number == finding.cell)


class PlacedEdit(NamedTuple):
    """An edit with 1-based lines and columns, those of a notebook's ``cell`` where there is one."""

    start: Place
    end: Place
    text: str
    cell: Optional[int] = None


def placed_edits(document: Document, lines: Lines, fix: Fix) -> list[PlacedEdit]:
    """The edits of a fix, with its imports, as editors and other programs take them."""
    edits = [PlacedEdit(lines.place(e.start), lines.place(e.end), e.text) for e in fix.all_edits]
    notebook = document.notebook
    return edits if notebook is None else [_in_cell(notebook, edit) for edit in edits]


def _in_cell(notebook: Notebook, edit: PlacedEdit) -> PlacedEdit:
    from migrator.files.notebook import cell_place

    cell, line = cell_place(notebook, edit.start[0])
    if line > cell.rows:  # below the last line, which has no line end of its own in a notebook
        last = cell.rows, len(cell.source.rpartition("\n")[2]) + 1
        return PlacedEdit(last, last, "\n" + edit.text.rstrip("\n"), cell.number)
    end = cell_place(notebook, edit.end[0])[1], edit.end[1]
    return PlacedEdit((line, edit.start[1]), end, edit.text, cell.number)
