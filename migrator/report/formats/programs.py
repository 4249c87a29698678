"""The output formats for other programs: what CI servers, reviewers and editors read, and a page."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from migrator import __version__
from migrator.files.errors import harmless, shown
from migrator.findings.finding import Finding, Place
from migrator.report.formats import LintReport
from migrator.report.formats.text import cell_of, words_of

if TYPE_CHECKING:
    from migrator.matchers.packs import Rule

# -- lines -----------------------------------------------------------------------------


def write_pylint(report: LintReport, stream: TextIO) -> None:
    """Pylint's parseable lines, which many editors and CI plugins read: ``path:row: [CODE] message``."""
    for item in report.findings:
        place = f"{shown(_relative(item.file))}:{cell_of(item)}{item.line}"
        stream.write(f"{place}: [{item.code}] {words_of(item)}\n")


def write_github(report: LintReport, stream: TextIO) -> None:
    """Workflow commands of GitHub Actions, ``::error …::message``; paths are those in the workspace."""
    commands = {"blocker": "error", "info": "notice"}
    for item in report.findings:
        path = _relative(item.file, os.environ.get("GITHUB_WORKSPACE"))
        properties = {"title": f"npumigrate ({item.code})", "file": path}
        if item.cell is None:  # rows of a notebook count in the cell, and would point elsewhere in the file
            properties.update(line=str(item.line), endLine=str(item.end_line))
            if item.line == item.end_line:  # GitHub refuses columns of a span of several lines
                properties.update(col=str(item.column), endColumn=str(item.end_column))
        listed = ",".join(
            f"{key}={_on_one_line(value).replace(':', '%3A').replace(',', '%2C')}"
            for key, value in properties.items()
        )
        text = f"{path}:{cell_of(item)}{item.line}:{item.column}: {item.code} {words_of(item)}"
        stream.write(f"::{commands.get(item.severity, item.severity)} {listed}::{_on_one_line(text)}\n")


def write_azure(report: LintReport, stream: TextIO) -> None:
    """Logging commands of Azure Pipelines, ``##vso[task.logissue …]``. It knows errors and warnings only."""
    for item in report.findings:
        kind = "error" if item.severity in ("blocker", "error") else "warning"
        path = _on_one_line(_relative(item.file), "%AZP25").replace(";", "%3B").replace("]", "%5D")
        place = f"linenumber={item.line};columnnumber={item.column};" if item.cell is None else ""
        stream.write(
            f"##vso[task.logissue type={kind};sourcepath={path};{place}"
            f"code={item.code};]{_on_one_line(_placed_words_of(item), '%AZP25')}\n"
        )


def _on_one_line(text: str, percent: str = "%25") -> str:
    """A text as a command of a CI server takes it."""
    return harmless(text).replace("%", percent).replace("\r", "%0D").replace("\n", "%0A")


# -- JSON ------------------------------------------------------------------------------


_RUFFS = ("location", "end_location", "row")


def write_json(report: LintReport, stream: TextIO) -> None:
    """One array with the keys that ruff uses, each finding written before the next one is made."""
    before = "[\n  "
    for item in report.findings:
        stream.write(before + json.dumps(_with_ruffs_keys(item, report), indent=2).replace("\n", "\n  "))
        before = ",\n  "
    stream.write("\n]\n" if report.findings else "[]\n")


def write_json_lines(report: LintReport, stream: TextIO) -> None:
    """One JSON object a line, for programs that read while the run goes on."""
    for item in report.findings:
        stream.write(json.dumps(_with_ruffs_keys(item, report)) + "\n")


def _with_ruffs_keys(item: Finding, report: LintReport) -> dict[str, Any]:
    """A finding under ruff's keys, and our own beside them: severity, rule, advice and api."""
    edits = [
        {"content": edit.text, **_sides(edit.start, edit.end, *_RUFFS)}
        | ({"cell": edit.cell} if edit.cell is not None else {})
        for edit in (report.edits(item) if item.fix else ())
    ]
    fix = item.fix
    return {
        "cell": item.cell,
        "code": item.code,
        "name": item.rule,
        "severity": item.severity,
        "filename": os.path.abspath(item.file) if item.file != "-" else "-",
        **_sides(item.start, item.end, *_RUFFS),
        "message": item.message,
        "advice": item.advice or None,
        "api": item.api or None,
        "fix": {"applicability": fix.safety, "message": fix.message, "edits": edits} if fix else None,
        "noqa_row": item.noqa_line,
        "url": item.url or None,
    }


def write_gitlab(report: LintReport, stream: TextIO) -> None:
    """GitLab's code quality report, as ``artifacts:reports:codequality`` takes it; paths as there."""
    severities = {"error": "major", "warning": "minor"}
    content = []
    for item, fingerprint in zip(report.findings, _fingerprints(report)):
        # The rows of a notebook count in the cell, and would point elsewhere in the file.
        start, end = (item.start, item.end) if item.cell is None else ((1, 1), (1, 1))
        path = _relative(item.file, os.environ.get("CI_PROJECT_DIR"))
        content.append(
            {
                "check_name": item.code,
                "description": f"{item.code}: {_placed_words_of(item)}",
                "severity": severities.get(item.severity, item.severity),
                "fingerprint": fingerprint,
                "location": {"path": path, "positions": _sides(start, end, "begin", "end")},
            }
        )
    _dump(content, stream)


def write_rdjson(report: LintReport, stream: TextIO) -> None:
    """Reviewdog's diagnostic format, with fixes as suggestions."""
    diagnostics = []
    for item in report.findings:
        location: dict[str, Any] = {"path": _relative(item.file)}
        if item.cell is None:
            location["range"] = _sides(item.start, item.end)
        content: dict[str, Any] = {
            "message": _placed_words_of(item),
            "location": location,
            "severity": ("error" if item.severity == "blocker" else item.severity).upper(),
            "code": {"value": item.code, **({"url": item.url} if item.url else {})},
        }
        # A suggestion stands alone; a fix of several edits would be half made.
        if item.fix is not None and item.cell is None and len(item.fix.all_edits) == 1:
            edit = report.edits(item)[0]
            content["suggestions"] = [{"range": _sides(edit.start, edit.end), "text": edit.text}]
        diagnostics.append(content)
    source = {"source": {"name": "npumigrate"}, "severity": "WARNING"}
    _dump({**source, "diagnostics": diagnostics}, stream)


def _sides(
    start: Place, end: Place, first: str = "start", last: str = "end", row: str = "line"
) -> dict[str, dict[str, int]]:
    """Where a span begins and ends, under the names that a format has for it."""
    return {first: {row: start[0], "column": start[1]}, last: {row: end[0], "column": end[1]}}


def _dump(content: Any, stream: TextIO) -> None:
    json.dump(content, stream, indent=2)
    stream.write("\n")


# -- SARIF -----------------------------------------------------------------------------

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {"blocker": "error", "error": "error", "warning": "warning", "info": "note"}


def write_sarif(report: LintReport, stream: TextIO) -> None:
    """SARIF 2.1.0, for GitHub code scanning and other viewers: findings, rules with their texts, and fixes.

    One log with one run. Paths are those from the folder of the run, whose name is left out.
    """
    rules = report.rules()
    codes = sorted({*rules, *(item.code for item in report.findings)})
    results = [
        _sarif_result(item, report, codes.index(item.code), fingerprint)
        for item, fingerprint in zip(report.findings, _fingerprints(report))
    ]
    described = [_sarif_rule(rules[code]) if code in rules else {"id": code} for code in codes]
    driver = {"name": "npumigrate", "version": __version__, "rules": described}
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    _dump({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, stream)


def _sarif_rule(rule: Rule) -> dict[str, Any]:
    why = rule.why.strip() or rule.summary
    content: dict[str, Any] = {
        "id": rule.code,
        "name": "".join(word.capitalize() for word in rule.name.split("-")),
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": why},
        "help": {"text": why, "markdown": f"**{rule.code}: {rule.summary}**\n\n{why}\n"},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {"tags": ["npumigrate"], "fix": rule.fix},
    }
    if rule.links:
        content["helpUri"] = rule.links[0]
    return content


def _sarif_result(item: Finding, report: LintReport, rule: int, fingerprint: str) -> dict[str, Any]:
    from urllib.parse import quote  # few runs need it

    name = _relative(item.file)
    artifact = {"uri": Path(name).as_uri() if os.path.isabs(name) else quote(os.fsencode(name))}
    if item.file == "-":
        artifact = {"uri": "stdin"}
    elif not name.startswith("/"):
        artifact["uriBaseId"] = "SRCROOT"
    place: dict[str, Any] = {"artifactLocation": artifact}
    location: dict[str, Any] = {"physicalLocation": place}
    if item.cell is None:
        place["region"] = _region(item.start, item.end)
    else:  # a notebook is one line of JSON, or many: its rows are not those of the cell
        location["logicalLocations"] = [{"name": f"cell {item.cell}", "kind": "element"}]
    content: dict[str, Any] = {
        "ruleId": item.code,
        "ruleIndex": rule,
        "level": _LEVELS[item.severity],
        "message": {"text": _placed_words_of(item)},
        "locations": [location],
        "partialFingerprints": {"npumigrate/v1": fingerprint},
    }
    if item.fix is not None and item.cell is None:
        replacements = [
            {"deletedRegion": _region(edit.start, edit.end), "insertedContent": {"text": edit.text}}
            for edit in report.edits(item)
        ]
        text = {"text": f"{item.fix.message} ({item.fix.safety} fix)"}
        changes = [{"artifactLocation": artifact, "replacements": replacements}]
        content["fixes"] = [{"description": text, "artifactChanges": changes}]
    return content


def _region(start: Place, end: Place) -> dict[str, int]:
    return {"startLine": start[0], "startColumn": start[1], "endLine": end[0], "endColumn": end[1]}


# -- documents -------------------------------------------------------------------------

# What XML 1.0 cannot hold.
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_junit(report: LintReport, stream: TextIO) -> None:
    """JUnit XML, which most CI servers show: a suite for each file, a failed test for each finding.

    Where nothing was found it has one test, which passed.
    """
    from xml.etree.ElementTree import Element, SubElement, tostring

    def numbers(name: str, tests: int, failures: int) -> dict[str, str]:
        return {"name": name, "tests": str(tests), "failures": str(failures), "errors": "0"}

    total = len(report.findings)
    root = Element("testsuites", numbers("npumigrate", total or 1, total))
    for path, group in groupby(report.findings, key=lambda item: item.file):
        items = list(group)
        name = _for_xml(_relative(path))
        own = SubElement(root, "testsuite", numbers(name, len(items), len(items)))
        for item in items:
            place = f"{cell_of(item, ', ')}line {item.line}"
            title, line = f"{item.code} {place}", str(item.line)
            case = SubElement(own, "testcase", name=title, classname=name, line=line)
            words = _for_xml(words_of(item))
            failure = SubElement(case, "failure", type=item.severity, message=words)
            failure.text = f"{name}: {place}, column {item.column}: {item.code} {words}"
    if not total:
        own = SubElement(root, "testsuite", numbers("npumigrate", 1, 0))
        SubElement(own, "testcase", name="no findings", classname="npumigrate")
    stream.write('<?xml version="1.0" encoding="utf-8"?>\n')
    stream.write(tostring(root, encoding="unicode"))
    stream.write("\n")


def _for_xml(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", harmless(text))


def write_html(report: LintReport, stream: TextIO) -> None:
    """A self-contained page to look at, as that of a migration."""
    import pandas

    from migrator.report.csv_tables import REVIEW, file_of, row_of
    from migrator.report.views.page import pages
    from migrator.report.views.run import PLACE_COLUMNS, Run

    rows = []
    lines: dict[str, Finding] = {}
    for item in report.findings:
        file = shown(item.file)
        # Nothing was changed: the fix is what could be done.
        advice = item.advice or (item.fix.message if item.fix else "")
        row = {**row_of(file, item), "table": REVIEW, "advice": advice}
        rows.append({name: row[name] for name in PLACE_COLUMNS})
        lines.setdefault(file_of(file, item), item)
    by_rule = Counter(item.code for item in report.findings)
    summary = {  # the numbers that a migration's has
        "npumigrate": __version__,
        "torch": "",
        "options": {},
        "files": {"seen": 0, "changed": 0},
        "changes": {"total": 0, "unsafe": 0, "by_rule": {}},
        "findings": {
            "fixable": sum(item.fix is not None for item in report.findings),
            "by_severity": Counter(item.severity for item in report.findings),
            "by_rule": {code: {"total": count} for code, count in by_rule.items()},
        },
    }
    name = shown(os.path.basename(os.getcwd())) or "/"
    places = pandas.DataFrame(rows, columns=list(PLACE_COLUMNS))
    skipped = pandas.DataFrame(columns=["file", "reason", "severity"])
    run = Run("lint", name, places, skipped, summary, lambda file: report.lines(lines[file]) or None)
    for _, text in pages(run, report.rules(), one_page=True):
        stream.write(text)


# -- what several of them share --------------------------------------------------------


def _placed_words_of(item: Finding) -> str:
    """The words, with the place in a notebook's cell before them: for formats that know no cells."""
    place = f"{cell_of(item, ', ')}line {item.line}: " if item.cell is not None else ""
    return place + words_of(item)


def _relative(path: str, root: str | None = None) -> str:
    """The path from ``root`` or the current folder; the whole path of a file outside of it; ``-`` stays."""
    if path == "-":
        return path
    whole = os.path.abspath(path)
    try:
        inside = os.path.relpath(whole, root or os.curdir)
    except ValueError:  # another drive
        return whole.replace(os.sep, "/")
    return (whole if inside.startswith(os.pardir + os.sep) else inside).replace(os.sep, "/")


def _fingerprints(report: LintReport) -> list[str]:
    """For each finding a text that stays when lines move, and that no other finding of the run has.

    It is made of file, rule, and the source line without its indentation; equal ones are counted.
    """
    from hashlib import sha256  # few runs need it

    seen: Counter[str] = Counter()
    result = []
    for item in report.findings:
        lines = report.lines(item)
        line = lines[item.line - 1] if 0 < item.line <= len(lines) else ""  # it may be gone
        parts = (_relative(item.file), str(item.cell), item.code, item.api, line.strip())
        key = sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:32]
        seen[key] += 1
        result.append(key if seen[key] == 1 else f"{key}-{seen[key]}")
    return result
