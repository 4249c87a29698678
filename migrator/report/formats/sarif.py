"""SARIF 2.1.0, for GitHub code scanning and other viewers: findings, rules with their texts, and fixes."""

from __future__ import annotations

import json
from typing import Any, TextIO

from migrator import __version__
from migrator.lint.diagnostic import Diagnostic, Fix, LintReport, Position, RuleText
from migrator.report.formats.style import placed_words_of
from migrator.report.formats.uris import fingerprints, relative, uri

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {"error": "error", "warning": "warning", "info": "note"}
_ROOT = "SRCROOT"


def write(report: LintReport, stream: TextIO) -> None:
    """One log with one run. Paths are those from the folder of the run, whose name is left out."""
    rules = report.rules()
    codes = sorted({*rules, *(item.code for item in report.diagnostics)})
    results = [
        _result(item, codes.index(item.code), fingerprint)
        for item, fingerprint in zip(report.diagnostics, fingerprints(report))
    ]
    driver = {
        "name": "npumigrate",
        "version": __version__,
        "rules": [_rule(code, rules.get(code)) for code in codes],
    }
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    json.dump({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, stream, indent=2)
    stream.write("\n")


def _rule(code: str, rule: RuleText | None) -> dict[str, Any]:
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
    if rule.url:
        content["helpUri"] = rule.url
    return content


def _result(item: Diagnostic, rule: int, fingerprint: str) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": _artifact(item.path)}
    location: dict[str, Any] = {"physicalLocation": place}
    if item.cell is None:
        place["region"] = _region(Position(item.row, item.column), Position(item.end_row, item.end_column))
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
        content["fixes"] = [_fix(item.fix, item.path)]
    return content


def _fix(fix: Fix, path: str) -> dict[str, Any]:
    replacements = [
        {"deletedRegion": _region(edit.start, edit.end), "insertedContent": {"text": edit.content}}
        for edit in fix.edits
    ]
    return {
        "description": {"text": f"{fix.message} ({fix.applicability} fix)"},
        "artifactChanges": [{"artifactLocation": _artifact(path), "replacements": replacements}],
    }


def _artifact(path: str) -> dict[str, str]:
    if path == "-" or relative(path).startswith("/"):
        return {"uri": "stdin" if path == "-" else uri(path)}
    return {"uri": uri(path), "uriBaseId": _ROOT}


def _region(start: Position, end: Position) -> dict[str, int]:
    return {
        "startLine": start.row,
        "startColumn": start.column,
        "endLine": end.row,
        "endColumn": end.column,
    }
