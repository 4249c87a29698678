"""What a fix made of its lines: Before is read from the input, After from the final text."""

from __future__ import annotations

from dataclasses import dataclass, replace

from migrator.files.lines import Lines
from migrator.findings.edits import OffsetMap
from migrator.findings.finding import Finding
from migrator.names.index import ModuleIndex


@dataclass(frozen=True)
class Change:
    """A fix that is made in one pass.

    ``lines`` are the bytes of the whole lines that it touches, in the text before the pass, and ``old``
    those in the input. ``rounds`` of edits came before. ``opens`` and ``closes``: it inserts something right
    before or behind these lines, which belongs to them. ``inserted`` is the statement that it adds, empty
    where it changes what is there.
    """

    finding: Finding
    lines: tuple[int, int]
    old: tuple[int, int]
    rounds: int
    opens: bool
    closes: bool
    inserted: str


def planned(in_input: Finding, found: Finding, index: ModuleIndex, before: OffsetMap) -> Change:
    """The change that the fix of a finding is about to make in the text of an index.

    ``found`` has its places in that text, ``in_input`` in the input, from which ``before`` leads there.
    """
    fix = found.fix
    assert fix is not None
    spans = [found.span, *((edit.start, edit.end) for edit in fix.edits)]
    if fix.operation == "INSERT":  # it is named by the line that it stands behind
        spans = [(max(fix.edits[0].start - 1, 0), 0)]
    first = min(index.line_of(start) for start, _ in spans)
    last = max(index.line_of(max(start, end - 1)) for start, end in spans)
    start, end = index.line_span(first, last)
    end = start + len(index.data[start:end].rstrip(b"\r\n"))
    return Change(
        in_input,
        (start, end),
        (before.back(start), before.back(end)),
        len(before.steps),
        opens=any(edit.start == edit.end == start for edit in fix.edits),
        closes=any(edit.start == edit.end == end for edit in fix.edits),
        inserted=fix.edits[0].text.strip("; \r\n") if fix.operation == "INSERT" else "",
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
        new_first = result.line_of(way.forward(start, behind=not change.opens))
        new_last = max(new_first, result.line_of(way.forward(end, behind=change.closes)))
        begin, finish = result.span(new_first, new_last)[0], result.content_end(new_last)
        after = result.data[begin:finish].decode("utf-8").strip()
    fix = replace(fix, made=True, lines=(first, last), before=before, after=after)
    return replace(change.finding, fix=fix)
