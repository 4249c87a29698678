"""SARIF 2.1.0, for GitHub code scanning and other viewers: findings, rules with their texts, and fixes."""

from __future__ import annotations

import json
from typing import Any, TextIO

from migrator import __version__
from migrator.findings.finding import Finding, Fix, Place
from migrator.matchers.packs import Rule
from migrator.report.formats import LintReport
from migrator.report.formats.style import fingerprints, placed_words_of, relative, uri

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {"blocker": "error", "error": "error", "warning": "warning", "info": "note"}
_ROOT = "SRCROOT"


def write(report: LintReport, stream: TextIO) -> None:
    """One log with one run. Paths are those from the folder of the run, whose name is left out."""
    rules = report.rules()
    codes = sorted({*rules, *(item.code for item in report.findings)})
    results = [
        _result(item, report, codes.index(item.code), fingerprint)
        for item, fingerprint in zip(report.findings, fingerprints(report))
    ]
    driver = {
        "name": "npumigrate",
        "version": __version__,
        "rules": [_rule(code, rules.get(code)) for code in codes],
    }
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    json.dump({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, stream, indent=2)
    stream.write("\n")


def _rule(code: str, rule: Rule | None) -> dict[str, Any]:
    if rule is None:
        return {"id": code}
    why = rule.why.strip() or rule.summary
    content: dict[str, Any] = {
        "id": code,
        "name": "".join(word.capitalize() for word in rule.name.split("-")),
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": why},
        "help": {"text": why, "markdown": f"**{code}: {rule.summary}**\n\n{why}\n"},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {"tags": ["npumigrate"], "fix": rule.fix},
    }
    if rule.links:
        content["helpUri"] = rule.links[0]
    return content


def _result(item: Finding, report: LintReport, rule: int, fingerprint: str) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": _artifact(item.file)}
    location: dict[str, Any] = {"physicalLocation": place}
    if item.cell is None:
        place["region"] = _region(item.start, item.end)
    else:  # a notebook is one line of JSON, or many: its rows are not those of the cell
        location["logicalLocations"] = [{"name": f"cell {item.cell}", "kind": "element"}]
    content: dict[str, Any] = {
        "ruleId": item.code,
        "ruleIndex": rule,
        "level": _LEVELS[item.severity],
        "message": {"text": placed_words_of(item)},
        "locations": [location],
        "partialFingerprints": {"npumigrate/v1": fingerprint},
    }
    if item.fix is not None and item.cell is None:
        content["fixes"] = [_fix(item, item.fix, report)]
    return content


def _fix(item: Finding, fix: Fix, report: LintReport) -> dict[str, Any]:
    replacements = [
        {"deletedRegion": _region(edit.start, edit.end), "insertedContent": {"text": edit.text}}
        for edit in report.edits(item)
    ]
    return {
        "description": {"text": f"{fix.message} ({fix.safety} fix)"},
        "artifactChanges": [{"artifactLocation": _artifact(item.file), "replacements": replacements}],
    }


def _artifact(path: str) -> dict[str, str]:
    if path == "-":
        return {"uri": "stdin"}
    outside = relative(path).startswith("/")
    return {"uri": uri(path)} if outside else {"uri": uri(path), "uriBaseId": _ROOT}


def _region(start: Place, end: Place) -> dict[str, int]:
    return {"startLine": start[0], "startColumn": start[1], "endLine": end[0], "endColumn": end[1]}
