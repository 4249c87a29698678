"""One text through the engine: what a lint run has to say of it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection
from dataclasses import replace
from typing import Optional, cast

from migrator.core.engine import Engine
from migrator.files.source import line_starts
from migrator.findings.edits import apply
from migrator.findings.finding import Edit, Finding
from migrator.lint import suppressions
from migrator.lint.diagnostic import Applicability, Checked, Diagnostic, Fix, Position, Severity, TextEdit
from migrator.project.project import Project

SYNTAX = "NPU999"
_IMPORT = "NPU901"
_SYNTAX_PLACE = r"(?s)(?:line (\d+): )?(not valid Python.*|an expression is nested too deeply.*)"
_LONGEST = 80  # characters of code in a fix's message


class Lines:
    """Byte offsets of a text's UTF-8 form as rows and columns."""

    def __init__(self, text: str) -> None:
        self.data = text.encode("utf-8")
        self._starts = line_starts(self.data)

    def place(self, offset: int) -> Position:
        """The row and the column, in characters, of a byte offset."""
        row = bisect_right(self._starts, offset)
        before = self.data[self._starts[row - 1] : offset]
        return Position(row, len(before.decode("utf-8", "replace")) + 1)

    def offset(self, place: Position) -> int:
        """The byte offset of a row and column."""
        start = self._starts[place.row - 1]
        end = self._starts[place.row] if place.row < len(self._starts) else len(self.data)
        before = self.data[start:end].decode("utf-8")[: place.column - 1]
        return start + len(before.encode("utf-8"))


def check(
    engine: Engine,
    path: str,
    name: str,
    text: str,
    project: Project,
    ignored: Collection[str] = (),
    noqa: bool = True,
) -> Checked:
    """The findings of a text, those that its own comments suppress left out.

    ``path`` is the file's spelling in the findings, ``name`` its name inside the
    project. ``ignored`` holds codes, or beginnings of codes, that do not count here;
    with ``noqa`` off, comments suppress nothing.
    """
    comments = suppressions.read(text) if noqa else suppressions.Suppressions()
    if comments.skip_file:
        return Checked()
    result = engine.check_text(name, text, project)
    enabled = [code for code in engine.enabled if not code.startswith(tuple(ignored))]
    if result.trace:
        from migrator.report.log_file import keep_details

        return Checked(trouble=f"{result.skipped}; {keep_details(result.trace)}")
    if result.skipped:
        return _unparsed(engine, path, text, result.skipped, SYNTAX in enabled)
    findings = [item for item in result.findings if item.code in enabled]
    if findings and noqa and not comments.lines:
        comments = suppressions.line_ends(text)
    lines = Lines(text)
    found, suppressed = comments.apply(_diagnostic(engine, path, item, lines) for item in findings)
    found = _with_those_that_need_it(found)
    if suppressions.UNUSED in enabled:
        rule = engine.rules[suppressions.UNUSED].name
        found += comments.unused(path, enabled, rule)
    return Checked(tuple(sorted(found, key=lambda item: (item.row, item.column, item.code))), suppressed)


def _with_those_that_need_it(found: list[Diagnostic]) -> list[Diagnostic]:
    """The findings, without imports of torch_npu whose users are all suppressed; each is as safe as those."""
    kept = []
    for item in found:
        if item.code == _IMPORT and item.fix:
            own = set(item.fix.edits)
            users = [each.fix for each in found if each.fix and each.code != _IMPORT]
            safety = {fix.applicability for fix in users if own.intersection(fix.edits)}
            if not safety:
                continue
            least: Applicability = "safe" if "safe" in safety else "unsafe"
            item = replace(item, fix=replace(item.fix, applicability=least))
        kept.append(item)
    return kept


def _unparsed(engine: Engine, path: str, text: str, reason: str, enabled: bool) -> Checked:
    match = re.fullmatch(_SYNTAX_PLACE, reason)
    if match is None:
        return Checked(trouble=reason)
    if not enabled:
        return Checked()
    row = int(match.group(1) or 1)
    column = 1
    rule = engine.rules[SYNTAX].name
    return Checked((Diagnostic(path, row, column, row, column + 1, SYNTAX, rule, "error", match.group(2)),))


def _diagnostic(engine: Engine, path: str, item: Finding, lines: Lines) -> Diagnostic:
    rule = engine.rules[item.code]
    start, end = item.span
    first, last = lines.place(start), lines.place(max(start, end))
    return Diagnostic(
        path=path,
        row=first.row,
        column=first.column,
        end_row=last.row,
        end_column=last.column,
        code=item.code,
        rule=rule.name,
        severity=cast(Severity, item.severity),
        message=item.message,
        advice=item.advice,
        fix=_fix(item, lines),
        url=next(iter(rule.references), ""),
        api=item.api,
    )


def _fix(item: Finding, lines: Lines) -> Optional[Fix]:
    if not item.edits or not item.safety:
        return None
    edits = tuple(
        TextEdit(lines.place(edit.start), lines.place(edit.end), edit.text)
        for edit in sorted(item.edits, key=lambda edit: edit.start)
    )
    return Fix(cast(Applicability, item.safety), _what_it_does(item, lines), edits)


def _what_it_does(item: Finding, lines: Lines) -> str:
    own = [edit for edit in item.edits if "import torch_npu" not in edit.text] or list(item.edits)
    start, end = item.span
    if item.operation != "INSERT" and all(start <= edit.start and edit.end <= end for edit in own):
        old = lines.data[start:end]
        shifted = [Edit(edit.start - start, edit.end - start, edit.text) for edit in own]
        new = apply(old, shifted).decode("utf-8")
        if len(new) <= _LONGEST and new.strip():
            return f"Replace {_code(old.decode('utf-8'))} by {_code(new)}"
    if len(own) > 1:
        return f"Rewrite as {_code(item.after)}"
    return _one_edit(own[0], lines)


def _one_edit(edit: Edit, lines: Lines) -> str:
    old = lines.data[edit.start : edit.end].decode("utf-8", "replace")
    if not old:
        return f"Insert {_code(edit.text)}"
    return f"Replace {_code(old)} by {_code(edit.text)}" if edit.text else f"Remove {_code(old)}"


def _code(text: str) -> str:
    line = " ".join(text.split())
    return f"`{line[:_LONGEST]}…`" if len(line) > _LONGEST else f"`{line}`"
