"""One file: what a lint run has to say of it."""

from __future__ import annotations

from collections.abc import Iterable

from migrator.core.changes import placed
from migrator.core.check import check
from migrator.core.rules import IMPORT, Rules
from migrator.files.document import Document, document
from migrator.files.errors import Unreadable
from migrator.files.source import Lines
from migrator.findings.edits import part_with
from migrator.findings.finding import (
    Finding,
    Fix,
    Result,
    Safety,
    SyntaxTrouble,
    internal_error,
    longest_beginning,
)
from migrator.language import N_, _
from migrator.lint import suppressions
from migrator.lint.checking import Checked, rules_of
from migrator.lint.files import Target, data_of
from migrator.project.project import Project
from migrator.run.cache import digest
from migrator.run.processes import GivenUpError

SYNTAX = "NPU999"
_LONGEST = 80  # characters of code in a fix's message


def check_target(target: Target, project: Project) -> tuple[bytes, Checked]:
    """The digest of the content that was looked at, as a file may just have changed, and what was found."""
    data = b""
    try:
        data = data_of(target)
        return digest(data), check_document(target, document(data, target.name), project)
    except Unreadable as error:
        return digest(data), Checked(trouble=str(error))
    except (Exception, GivenUpError) as error:
        return digest(data), failed(internal_error(target.name, error))


def check_document(target: Target, item: Document, project: Project) -> Checked:
    """The findings of a document, those that its own comments suppress left out.

    Raises RuleError where its rules cannot be used.
    """
    rules = rules_of(target.rules)
    try:
        return _checked(target, rules, item, project)
    except Exception as error:
        return failed(internal_error(target.name, error))


def failed(result: Result) -> Checked:
    """The finding for a file that an internal error kept from being checked."""
    from migrator.report.log_file import keep_details

    return Checked(trouble=f"{result.skipped}; {keep_details(result.trace)}")


def _checked(target: Target, rules: Rules, item: Document, project: Project) -> Checked:
    text = item.text
    enabled = rules.enabled
    if target.ignored:  # few files have codes of their own that do not count
        enabled = frozenset(code for code in enabled if longest_beginning(target.ignored, code) < 0)
    comments = suppressions.of_document(item) if target.rules.noqa else suppressions.Suppressions()
    found = []
    for cell in item.notebook.cells if item.notebook and SYNTAX in enabled else ():
        if cell.error:
            line, reason = cell.error
            message = _("cell skipped: not valid Python ({reason})", reason=reason)
            found.append(_unparsed(SyntaxTrouble(line + cell.first - 1, message)))
    if not comments.skip_file:
        result = check(item, rules, project, write=False)
        if result.trace:
            return failed(result)
        if result.skipped and not result.syntax:
            return Checked(trouble=result.skipped)
        if result.syntax:
            found += [_unparsed(trouble) for trouble in result.syntax if SYNTAX in enabled]
        else:
            counting = [finding for finding in result.findings if finding.code in enabled]
            if counting and target.rules.noqa and not comments.lines and not item.type:
                comments = suppressions.read(text, line_ends=True)
            kept = comments.apply(counting)
            found += [_with_message(finding, item.lines) for finding in _with_needed_imports(kept)]
            if suppressions.UNUSED in enabled:
                found += comments.unused(enabled, item.lines)
    found.sort(key=lambda finding: (finding.line, finding.column, finding.code))
    path, every = target.path, rules.every
    return Checked(
        tuple(placed(item, each)._replace(file=path, rule=every[each.code].name) for each in found)
    )


def _unparsed(trouble: SyntaxTrouble) -> Finding:
    line = trouble.line or 1
    return Finding(SYNTAX, trouble.message, line, 1, line, 2, "error")


def _with_needed_imports(found: list[Finding]) -> Iterable[Finding]:
    """The findings, without imports whose users are all suppressed; each is as safe as the safest user."""
    for finding in found:
        if finding.code == IMPORT and finding.fix and finding.fix.edits:
            own = set(finding.fix.edits)
            users = {each.safety for each in found if each.fix and own.intersection(each.fix.imports)}
            if not users:
                continue
            least: Safety = "safe" if "safe" in users else "unsafe"
            finding = finding._replace(fix=finding.fix._replace(safety=least))
        yield finding


def _with_message(finding: Finding, lines: Lines) -> Finding:
    """The finding with a fix that says what it does; without one that is only made with another fix."""
    fix = finding.fix
    if fix is None or not fix.edits:
        return finding._replace(fix=None)
    return finding._replace(fix=fix._replace(message=_what_it_does(finding.span, fix, lines)))


def _what_it_does(span: tuple[int, int], fix: Fix, lines: Lines) -> str:
    start, end = span
    # An import that a fix needs goes elsewhere, and says little.
    edits = [each for each in fix.edits if not each.text.startswith("import ")] or fix.edits
    if fix.operation != "INSERT" and all(start <= edit.start and edit.end <= end for edit in edits):
        new = part_with(lines.data, span, edits)
        if len(new) <= _LONGEST and new.strip():
            said = N_("Replace {value} with {new}")
            return _(said, value=_code(lines.data[start:end].decode("utf-8")), new=_code(new))
    if len(edits) > 1:
        first = lines.line_of(min(edit.start for edit in edits))
        last = max(first, lines.line_of(max(edit.end for edit in edits) - 1))  # not one that is put before
        new = part_with(lines.data, lines.span(first, last), edits)
        return _("Rewrite as {strip}", strip=_code(new.strip()))
    (edit,) = edits
    old = lines.data[edit.start : edit.end].decode("utf-8", "replace")
    if not old:
        return _("Insert {text}", text=_code(edit.text))
    if not edit.text:
        return _("Remove {old}", old=_code(old))
    return _("Replace {old} with {text}", old=_code(old), text=_code(edit.text))


def _code(text: str) -> str:
    line = " ⏎ ".join(" ".join(each.split()) for each in text.splitlines() if each.strip())
    return f"`{line[:_LONGEST]}…`" if len(line) > _LONGEST else f"`{line}`"
