"""What must hold for any input, whatever its bytes are: told as the first thing that does not hold."""

from __future__ import annotations

import json
import re
import warnings

import yaml

from migrator.core.check import check
from migrator.core.rules import Rules
from migrator.files.document import Document, document
from migrator.files.document import encoded as encoded_document
from migrator.files.errors import Unreadable
from migrator.findings.finding import Finding, Result
from migrator.project.facts import scan_file
from migrator.project.project import Project, merge_facts
from tests.core.test_change_rows import check_rows
from tests.timing import TooSlow, bounded

_SPLIT = re.compile("[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$").findall
SECONDS_A_FILE = 20.0  # of processor time, for a file of up to 100 KB: what takes longer may never end


def broken(name: str, data: bytes, rules: Rules) -> str:
    """What does not hold for a file with these bytes; empty where all does."""
    try:
        with bounded(SECONDS_A_FILE * max(1, len(data) / 100_000)), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the compiler, about what mutations make
            return _broken(name, data, rules)
    except TooSlow:
        return "takes too long"
    except Exception as error:
        return f"raises {error!r}"


def _broken(name: str, data: bytes, rules: Rules) -> str:
    try:
        before = document(data, name)
    except Unreadable:
        return ""
    if encoded_document(before, before.text) != data:
        return "does not come back to its bytes"
    result = check(before, rules, _project(before))
    if "internal" in result.skipped or "internal" in result.left:
        return f"{result.skipped or result.left}\n{result.trace}"
    if result.skipped and not before.type and "in plain letters" not in result.skipped:
        if _parses("", before.text):
            return f"is skipped though Python takes it: {result.skipped}"
    if result.text is None:
        return "a fix is marked as made, and nothing changed" if any(f.fixed for f in result.findings) else ""
    if result.skipped:
        return f"changed, and said to be skipped: {result.skipped}"
    return _changed(before, result, rules)


def _changed(before: Document, result: Result, rules: Rules) -> str:
    assert result.text is not None
    if before.type in ("", "json", "yaml") and _parses(before.type, before.text):
        if not _parses(before.type, result.text):
            return "the result does not parse"
    lost = lost_lines(before.text, result.text, reported_lines(result))
    if lost:
        return f"changes lines that no finding is about: {lost[:3]}"
    if not before.type and not any("; " in _inserted(finding) for finding in result.findings):
        try:
            check_rows(before.text, result)
        except AssertionError as error:
            return f"Before or After is not true: {error}"
    after = document(encoded_document(before, result.text), before.name)
    if after.text != result.text:
        return "the result is not read as it was written"
    again = check(after, rules, _project(after))
    if again.text is not None:
        return f"a second migration changes it: {[f.code for f in again.findings if f.fixed]}"
    return ""


def lost_lines(before: str, after: str, reported: set[int]) -> list[str]:
    """The lines of ``before`` that no finding covers and that ``after`` does not have, in their order.

    The last line may gain a newline when something is inserted behind it.
    """
    old, new = _SPLIT(before), iter(_SPLIT(after))
    lost = []
    for number, line in enumerate(old, 1):
        if number in reported:
            continue
        last = number == len(old)
        if not any(line == other or (last and line == other.rstrip("\r\n")) for other in new):
            lost.append(f"{number}: {line!r}")
    return lost


def reported_lines(result: Result) -> set[int]:
    return {
        line
        for finding in result.findings
        if finding.fixed
        for line in range(finding.lines[0], finding.lines[1] + 1)
    }


def _parses(of_type: str, text: str) -> bool:
    try:
        if of_type == "json":
            json.loads(text)
        elif of_type == "yaml":
            list(yaml.parse(text))
        else:
            compile(text, "", "exec", dont_inherit=True)
    except (ValueError, SyntaxError, yaml.YAMLError):
        return False
    return True


def _inserted(finding: Finding) -> str:
    """What a fix puts between two statements of one line is told without the line."""
    fix = finding.fix if finding.fixed else None
    return fix.edits[0].text if fix and fix.edits and fix.operation == "INSERT" else ""


def _project(item: Document) -> Project:
    return merge_facts([scan_file(item.name, item.text)]) if not item.type else Project()
